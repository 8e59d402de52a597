"""Crosses features: each combination of one value from each, as text or as a hash."""

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import to_array
from evenfeed.core.errors import described
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import bytes_array
from evenfeed.text_ops.hash_functions import fingerprint64

_DEFAULT_KEY: Final = 0xDECAFCAFFE
_FACTOR: Final = 0xC6A4A7935BD1E995
_ALL_BITS: Final = 2**64 - 1
_LARGEST: Final = 2**63 - 1


def cross(inputs: Sequence[Any], name: str | None = None) -> RaggedTensor:
    """Return each combination of one value from each input, per row, as text.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.cross([tf.ragged.constant([["a"], ["b", "c"]]), [["d"], ["e"]]]).to_list()
        [[b'a_X_d'], [b'b_X_e', b'c_X_e']]
    """
    del name
    features = [[[_text(value) for value in row] for row in rows] for rows in _rows(inputs)]
    made = [list(map(b"_X_".join, product(*row))) for row in zip(*features, strict=True)]
    return _ragged(bytes_array([text for row in made for text in row]), made)


def cross_hashed(
    inputs: Sequence[Any], num_buckets: Any = 0, hash_key: Any = None, name: str | None = None
) -> RaggedTensor:
    """Return the hash of each combination of one value from each input, per row.

    Args:
        inputs: Matrices of texts or integers: ragged, sparse or dense.
        num_buckets: Map hashes to numbers below this one; 0 for all hashes.
        hash_key: Where hashing begins; by default TensorFlow's number.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.cross_hashed([[["a"], ["b"]], [["d"], ["e"]]], num_buckets=100).to_list()
        [[82], [61]]
    """
    del name
    begin = (_DEFAULT_KEY if hash_key is None else int(hash_key)) & _ALL_BITS
    buckets = int(num_buckets) or _LARGEST
    features = [_hashed(rows) for rows in _rows(inputs)]
    made = [
        [reduce(_combined, values, begin) % buckets for values in product(*row)]
        for row in zip(*features, strict=True)
    ]
    return _ragged(np.array([value for row in made for value in row], np.int64), made)


def _rows(inputs: Sequence[Any]) -> list[list[list[Any]]]:
    found = [_of_one(value) for value in inputs]
    if len(set(map(len, found))) != 1:
        raise ValueError(
            described(
                f"All inputs must have as many rows, but have {[len(rows) for rows in found]}.",
                fix="pass features of one batch.",
            )
        )
    return found


def _of_one(value: Any) -> list[list[Any]]:
    if isinstance(value, (RaggedTensor, SparseTensor)) and len(value.shape) != 2:
        raise ValueError(
            described(
                f"Inputs must be matrices, but got shape {value.shape}.",
                fix="merge the inner axes with merge_dims(1, -1).",
            )
        )
    if isinstance(value, RaggedTensor):
        return value.to_list()
    if isinstance(value, SparseTensor):
        rows: list[list[Any]] = [[] for _ in range(int(value.dense_shape[0]))]
        for (row, _), one in zip(value.indices.tolist(), value.values.tolist(), strict=True):
            rows[row].append(one)
        return rows
    array = to_array(value)
    if array.ndim != 2 or array.dtype.kind not in "iuO":
        raise ValueError(
            described(
                f"Inputs must be matrices of texts or integers, but got {dtypes.name_of(array.dtype)} of shape "
                f"{array.shape}.",
                fix="pass one row for each element of the batch.",
            )
        )
    return array.tolist()


def _text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _hashed(rows: list[list[Any]]) -> list[list[int]]:
    """Return the fingerprints of texts; integers are their own."""
    flat = [value for row in rows for value in row]
    if not flat or not isinstance(flat[0], bytes):
        return [[value & _ALL_BITS for value in row] for row in rows]
    found = iter(fingerprint64(Texts.of(flat)).tolist())
    return [[next(found) for _ in row] for row in rows]


def _combined(first: int, second: int) -> int:
    """Combine two fingerprints as TensorFlow's FingerprintCat64 does."""
    mixed = _mixed(second * _FACTOR & _ALL_BITS) * _FACTOR & _ALL_BITS
    found = (first ^ _FACTOR ^ mixed) * _FACTOR & _ALL_BITS
    return _mixed(_mixed(found) * _FACTOR & _ALL_BITS)


def _mixed(word: int) -> int:
    return word ^ word >> 47


def _ragged(values: Any, made: Sequence[Sequence[Any]]) -> RaggedTensor:
    return RaggedTensor.from_row_lengths(values, np.fromiter(map(len, made), np.int64, len(made)))
