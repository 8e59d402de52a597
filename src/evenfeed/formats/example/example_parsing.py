"""Parsing serialized examples: `tf.io.parse_example` and `tf.io.parse_single_example`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import Handle
from evenfeed.core.promised_shapes import promise, promise_of
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.tensor_types import host_tensor
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.traced.kernel_stages import results_of
from evenfeed.formats.example.dependent_features import dependent_columns
from evenfeed.formats.example.example_batches import fixed_columns
from evenfeed.formats.example.example_columns import (
    FixedKernel,
    ListsKernel,
    PlacedKernel,
    RowsKernel,
)
from evenfeed.formats.example.example_lists import batch_of, is_plain, lists_of
from evenfeed.formats.example.features import (
    Fixed,
    Placed,
    Ragged,
    Sequenced,
    Wanted,
    wanted_of,
)


def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parse one serialized `tf.train.Example`.

    In `Dataset.map` it parses many examples at a time.

    Args:
        serialized: The bytes of the example.
        features: A dict from feature name to `FixedLenFeature`, `VarLenFeature` or
            `FixedLenSequenceFeature`.
        example_names: Accepted for compatibility; ignored.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> label = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
        >>> example = tf.train.Example(features=tf.train.Features(feature={"label": label}))
        >>> features = {"label": tf.io.FixedLenFeature([], tf.int64)}
        >>> int(tf.io.parse_single_example(example.SerializeToString(), features)["label"])
        7
    """
    del example_names, name
    return _parse(serialized, wanted_of(features), single=True)


def parse_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parse a batch of serialized `tf.train.Example` messages into stacked features.

    Args:
        serialized: The bytes of each example.
        features: A dict from feature name to `FixedLenFeature`, `VarLenFeature` or
            `FixedLenSequenceFeature`.
        example_names: Accepted for compatibility; ignored.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> def example(*words):
        ...     feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=words))
        ...     features = tf.train.Features(feature={"words": feature})
        ...     return tf.train.Example(features=features).SerializeToString()
        >>> features = {"words": tf.io.VarLenFeature(tf.string)}
        >>> words = tf.io.parse_example([example(b"a", b"b"), example(b"c")], features)["words"]
        >>> tf.sparse.to_dense(words)
        array([[b'a', b'b'],
               [b'c', b'']], dtype=object)
    """
    del example_names, name
    return _parse(serialized, wanted_of(features), single=False)


def _parse(serialized: Any, wanted: tuple[Wanted, ...], *, single: bool) -> dict[str, Any]:
    for feature in wanted:
        if isinstance(feature, Sequenced) and not feature.may_miss:
            raise ValueError(
                described(
                    f"Unsupported: feature {feature.key!r} is a FixedLenSequenceFeature, which requires "
                    "allow_missing to be True.",
                    fix="pass allow_missing=True; a missing feature becomes empty.",
                )
            )
    if isinstance(serialized, Handle):
        return parts_of(serialized, wanted, single=single)
    records = records_of(serialized, single=single)
    found = columns_of(Texts.of(records.ravel().tolist()), wanted)
    if single or records.ndim == 0:
        return tensors_of({w.key: first_of(found[w.key]) for w in wanted}, wanted, [])
    return tensors_of({w.key: found[w.key] for w in wanted}, wanted, lengths_of(serialized))


def parts_of(serialized: Handle, wanted: tuple[Wanted, ...], *, single: bool) -> dict[str, Any]:
    """Return the placeholders of features, in a trace."""
    fixed = tuple(feature for feature in wanted if isinstance(feature, Fixed))
    plain = tuple(feature for feature in wanted if is_plain(feature))
    placed = tuple(feature for feature in wanted if isinstance(feature, Placed))
    split = tuple(one for one in wanted if isinstance(one, Ragged) and not is_plain(one))
    found: dict[str, Any] = {}
    for features, kernel in (
        (fixed, FixedKernel(fixed, single)),
        (plain, ListsKernel(plain, single)),
        (placed, PlacedKernel(placed, single)),
        (split, RowsKernel(split, single)),
    ):
        if features:
            results = results_of(kernel, serialized)
            assert results is not None
            found |= {of.key: part for of, part in zip(features, results, strict=True)}
    return {feature.key: found[feature.key] for feature in wanted}


def columns_of(records: Texts, wanted: Sequence[Wanted]) -> dict[str, Any]:
    """Return each feature of all records."""
    fixed = [feature for feature in wanted if isinstance(feature, Fixed)]
    plain = [feature for feature in wanted if is_plain(feature)]
    rest = [feature for feature in wanted if isinstance(feature, Placed | Ragged)]
    rest = [feature for feature in rest if not is_plain(feature)]
    arrays = map(np.asarray, fixed_columns(records, fixed) if fixed else [])
    found: dict[str, Any] = {f.key: array for f, array in zip(fixed, arrays, strict=True)}
    lists = lists_of(records, plain) if plain else []
    found |= {w.key: batch_of(held, w) for held, w in zip(lists, plain, strict=True)}
    for feature, column in zip(rest, dependent_columns(records, rest), strict=True):
        found[feature.key] = column
    return found


def first_of(value: Any) -> Any:
    """Return the only row of a feature that was parsed from one record."""
    if isinstance(value, RaggedTensor):
        return value.row(0)
    if isinstance(value, SparseTensor):
        return SparseTensor(value.indices[:, 1:], value.values, value.dense_shape[1:])
    return value[0, ...]


def tensors_of(
    found: dict[str, Any], wanted: Sequence[Wanted], rows: Sequence[int | None]
) -> dict[str, Any]:
    """Return tensors, and promise what is known about the shapes that all examples have.

    Args:
        found: The features.
        wanted: What was asked for.
        rows: The number of records, if it is always the same, in a list; an empty list if there is one record.
    """
    tensors = {key: host_tensor(value) for key, value in found.items()}
    for feature in wanted:
        if isinstance(feature, Fixed):
            promise(tensors[feature.key], [*rows, *feature.shape])
        elif isinstance(feature, Sequenced):
            promise(tensors[feature.key], [*rows, None, *feature.shape])
    return tensors


def lengths_of(serialized: Any) -> Sequence[int | None]:
    """Return the shape that a vector of records has for all elements of a dataset."""
    given = promise_of(serialized).given
    return [None] if given.rank is None else tuple(given)


def records_of(serialized: Any, *, single: bool) -> Array:
    """Return the `serialized` argument as a scalar or vector of bytes."""
    array = to_array(serialized)
    if array.dtype != dtypes.string:
        raise ValueError(
            described(
                f"serialized must be bytes, but got {shortened(serialized)}.",
                fix="pass what SerializeToString() returned, or records of a TFRecordDataset.",
            )
        )
    if single and array.ndim:
        raise ValueError(
            described(
                f"serialized must be a scalar, but got shape {array.shape}.",
                fix="call parse_example, or parse_sequence_example, for a batch.",
            )
        )
    if array.ndim > 1:
        raise InvalidArgumentError(
            f"serialized must have at most one dimension, but got shape {array.shape}.",
            fix="pass a vector of records.",
        )
    return array
