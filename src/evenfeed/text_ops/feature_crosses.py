"""Crosses of features, as text or as TensorFlow's hashes: `tf.sparse.cross` and `cross_hashed`."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.text.text_values import bytes_array, encoded
from evenfeed.text_ops.hashing import fingerprints

_KEY: Final = 0xDECAFCAFFE  # TensorFlow's default
_MASK: Final = 2**64 - 1


def cross(
    inputs: Sequence[Any], name: str | None = None, separator: str | bytes | None = None
) -> SparseTensor:
    """Combine each value of a row with each value of the same row in the other inputs, as text.

    Args:
        inputs: Sparse or dense tensors of text or integers, with the same number of rows. Sparse ones come first.
        name: Accepted for compatibility.
        separator: What stands between two values; by default `_X_`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.cross([tf.constant([["a"], ["b"]]), tf.constant([["c"], ["d"]])]).values.tolist()
        [b'a_X_c', b'b_X_d']
    """
    del name
    given = b"_X_" if separator is None else separator
    between = encoded(given) if isinstance(given, str) else given
    rows, columns = _rows(
        [[_text(value) for value in row] for row in _column(one)] for one in _in_order(inputs)
    )

    def joined(values: tuple[Any, ...]) -> bytes:
        return between.join(values)

    return _crossed(rows, columns, joined, bytes_array)


def cross_hashed(
    inputs: Sequence[Any],
    num_buckets: int = 0,
    hash_key: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """Combine the values of each row like `cross`, as hashes. They are TensorFlow's.

    Args:
        inputs: Sparse or dense tensors of text or integers, with the same number of rows. Sparse ones come first.
        num_buckets: The number of different results; 0 for all that an int64 has.
        hash_key: The start of the hash.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> texts = [tf.constant([["a"], ["b"]]), tf.constant([["c"], ["d"]])]
        >>> tf.sparse.cross_hashed(texts, num_buckets=100).dense_shape.tolist()
        [2, 1]
    """
    del name
    start = _KEY if hash_key is None else int(hash_key)
    buckets = int(num_buckets) or 2**63 - 1
    rows, columns = _rows(_hashed(_column(one)) for one in _in_order(inputs))

    def hashed(values: tuple[Any, ...]) -> int:
        found = start
        for value in values:
            found = _mixed(found, value)
        return found % buckets

    return _crossed(rows, columns, hashed, partial(np.array, dtype=np.int64))


def _in_order(inputs: Sequence[Any]) -> list[Any]:
    """Return the sparse inputs before the dense ones, as TensorFlow crosses them."""
    return sorted(inputs, key=lambda value: not isinstance(value, SparseTensor))


def _rows(columns: Any) -> tuple[int, list[Any]]:
    """Return the number of rows and the columns, which must agree about it."""
    found = list(columns)
    if not found:
        raise ValueError(described("cross needs inputs.", fix="pass a list of tensors."))
    lengths = {len(column) for column in found}
    if len(lengths) > 1:
        raise InvalidArgumentError(
            f"The inputs of a cross must have the same number of rows, but have {sorted(lengths)}.",
            fix="pass tensors of one batch.",
        )
    return lengths.pop(), found


def _crossed(
    rows: int, columns: list[Any], combine: Callable[[tuple[Any, ...]], Any], pack: Any
) -> SparseTensor:
    values: list[Any] = []
    indices: list[tuple[int, int]] = []
    longest = 0
    for row in range(rows):
        found = [combine(values) for values in product(*(column[row] for column in columns))]
        indices.extend((row, place) for place in range(len(found)))
        values.extend(found)
        longest = max(longest, len(found))
    places = np.array(indices, np.int64).reshape(-1, 2)
    return SparseTensor(places, pack(values), np.array([rows, longest]))


def _column(value: Any) -> list[list[Any]]:
    """Return the values of each row."""
    if isinstance(value, SparseTensor):
        rows: list[list[Any]] = [[] for _ in range(int(value.dense_shape[0]))]
        for row, one in zip(
            value.indices[:, 0].tolist(), _whole(value.values).tolist(), strict=True
        ):
            rows[row].append(one)
        return rows
    if isinstance(value, RaggedTensor):
        raise TypeError(
            described("A cross takes sparse and dense tensors.", fix="pass ragged.to_sparse().")
        )
    array = to_array(value)
    return _whole(array).reshape(len(array), -1).tolist()


def _whole(values: Array) -> Array:
    """Return texts as they are, and numbers as integers."""
    return values if values.dtype == dtypes.string else values.astype(np.int64)


def _text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _hashed(column: list[list[Any]]) -> list[list[int]]:
    """Return the fingerprints of texts, and integers as they are."""
    flat = [value for row in column for value in row]
    if not flat or not isinstance(flat[0], bytes):
        return [[value & _MASK for value in row] for row in column]
    hashes = iter(fingerprints(flat).tolist())
    return [[next(hashes) for _ in row] for row in column]


def _mixed(one: int, two: int) -> int:
    """Combine two fingerprints, as TensorFlow does."""
    multiplier = 0xC6A4A7935BD1E995
    found = one ^ multiplier
    found ^= _shifted(two * multiplier & _MASK) * multiplier & _MASK
    found = found * multiplier & _MASK
    return _shifted(_shifted(found) * multiplier & _MASK)


def _shifted(value: int) -> int:
    return value ^ (value >> 47)
