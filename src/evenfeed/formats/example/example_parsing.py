"""Parsing serialized examples and sequence examples: `tf.io.parse_example` and `tf.io.parse_sequence_example`."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import Handle
from evenfeed.core.promised_shapes import promise, promise_of
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.tensor_types import host_tensor
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.traced.kernel_stages import results_of
from evenfeed.formats.example.example_batches import fixed_columns
from evenfeed.formats.example.example_columns import FixedKernel, ListsKernel
from evenfeed.formats.example.example_lists import Lists, batch_of, is_plain, lists_of
from evenfeed.formats.example.example_protos import (
    Where,
    array_of,
    fixed_value,
    lists_of_steps,
    padded,
    parsed,
    sequenced_value,
    steps_of,
    varying_value,
)
from evenfeed.formats.example.features import (
    Fixed,
    Placed,
    Ragged,
    Sequenced,
    Varying,
    Wanted,
    wanted_of,
)
from evenfeed.formats.example.ragged_rows import ragged_column, ragged_steps
from evenfeed.formats.example.sparse_places import placed_column


def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parse one serialized `tf.train.Example`.

    In `Dataset.map` it parses many examples at a time, unless a feature depends on others: a `SparseFeature`, or a
    `RaggedFeature` with partitions.

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
        return _parts_of(serialized, wanted, single=single)
    records = records_of(serialized, single=single)
    found = columns_of(Texts.of(records.ravel().tolist()), wanted)
    if single or records.ndim == 0:
        return _tensors_of({w.key: first_of(found[w.key]) for w in wanted}, wanted, [])
    return _tensors_of({w.key: found[w.key] for w in wanted}, wanted, _lengths_of(serialized))


def _parts_of(serialized: Handle, wanted: tuple[Wanted, ...], *, single: bool) -> dict[str, Any]:
    """Return the placeholders of features, in a trace."""
    fixed = tuple(feature for feature in wanted if isinstance(feature, Fixed))
    plain = tuple(feature for feature in wanted if is_plain(feature))
    if len(fixed) + len(plain) < len(wanted):
        raise TypeError("Features whose values depend on other features are parsed one by one.")
    found: dict[str, Any] = {}
    for features, kernel in (
        (fixed, FixedKernel(fixed, single)),
        (plain, ListsKernel(plain, single)),
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
    if rest:
        examples = [parsed("Example", record, row).features for row, record in enumerate(records)]
        found |= {w.key: varying_column(examples, w) for w in rest}
    return found


def varying_column(features: Sequence[Any], wanted: Varying | Sequenced | Ragged | Placed) -> Any:
    """Return a variable-length feature of all records, given their Features messages."""
    if isinstance(wanted, Ragged):
        return ragged_column(features, wanted)
    if isinstance(wanted, Placed):
        return placed_column(features, wanted)
    held = [(one.feature.get(wanted.key), Where(row)) for row, one in enumerate(features)]
    if isinstance(wanted, Varying):
        return sparse_rows([varying_value(*one, wanted) for one in held], wanted.dtype)
    return padded([sequenced_value(*one, wanted) for one in held], wanted)


def sparse_rows(parts: Sequence[Array], dtype: DType) -> SparseTensor:
    """Return rows of different lengths as a sparse tensor."""
    splits = np.cumsum([0, *map(len, parts)])
    return Lists(np.concatenate([np.empty(0, dtype), *parts]), splits).sparse()


def first_of(value: Any) -> Any:
    """Return the only row of a feature that was parsed from one record."""
    if isinstance(value, RaggedTensor):
        return value.row(0)
    if isinstance(value, SparseTensor):
        return SparseTensor(value.indices[:, 1:], value.values, value.dense_shape[1:])
    return value[0, ...]


def _tensors_of(
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


def _lengths_of(serialized: Any) -> Sequence[int | None]:
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


def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse one serialized `tf.train.SequenceExample`. Return its context and its feature lists.

    Args:
        serialized: The bytes of the example.
        context_features: The features of the context, by name.
        sequence_features: The feature lists, by name: `FixedLenSequenceFeature`, `VarLenFeature` or
            `RaggedFeature`.
        example_name: Accepted for compatibility; ignored.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> step = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))
        >>> lists = {"steps": tf.train.FeatureList(feature=[step, step])}
        >>> example = tf.train.SequenceExample(
        ...     feature_lists=tf.train.FeatureLists(feature_list=lists))
        >>> wanted = {"steps": tf.io.FixedLenSequenceFeature([2], tf.int64)}
        >>> serialized = example.SerializeToString()
        >>> tf.io.parse_single_sequence_example(serialized, None, wanted)[1]["steps"]
        array([[1, 2],
               [1, 2]])
    """
    del example_name, name
    context, sequence = _both(context_features, sequence_features)
    records = records_of(serialized, single=True)
    found, lists, _ = _sequences(records.ravel().tolist(), context, sequence)
    return (
        _tensors_of({key: first_of(value) for key, value in found.items()}, context, []),
        _tensors_of({key: first_of(value) for key, value in lists.items()}, sequence, []),
    )


def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Array]]:
    """Parse a batch of serialized `tf.train.SequenceExample`. Return contexts, feature lists and list lengths.

    Args:
        serialized: The bytes of each example.
        context_features: The features of the context, by name.
        sequence_features: The feature lists, by name: `FixedLenSequenceFeature`, `VarLenFeature` or
            `RaggedFeature`.
        example_names: Accepted for compatibility; ignored.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> wanted = {"steps": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
        >>> _, lists, lengths = tf.io.parse_sequence_example([b"", b""], None, wanted)
        >>> lists["steps"].shape, lengths["steps"].tolist()
        ((2, 0), [0, 0])
    """
    del example_names, name
    context, sequence = _both(context_features, sequence_features)
    records = records_of(serialized, single=False)
    found, lists, lengths = _sequences(records.ravel().tolist(), context, sequence)
    rows = _lengths_of(serialized)
    counted = {key: host_tensor(value) for key, value in lengths.items()}
    for tensor in counted.values():
        promise(tensor, rows)
    return _tensors_of(found, context, rows), _tensors_of(lists, sequence, rows), counted


def _both(context: Any, sequence: Any) -> tuple[tuple[Wanted, ...], tuple[Wanted, ...]]:
    if not context and not sequence:
        raise ValueError(
            described(
                "Both context_features and sequence_features are None, but at least one should have values.",
                fix="pass the features to parse.",
            )
        )
    lists = wanted_of(sequence, "sequence_features") if sequence else ()
    for wanted in lists:
        if isinstance(wanted, Fixed | Placed):
            kind = "FixedLenFeature" if isinstance(wanted, Fixed) else "SparseFeature"
            raise ValueError(
                described(
                    f"Unsupported {kind} for the feature list {wanted.key!r}.",
                    fix="pass FixedLenSequenceFeature(shape, dtype), VarLenFeature(dtype) or RaggedFeature(dtype).",
                )
            )
    return wanted_of(context, "context_features") if context else (), lists


def _sequences(
    records: list[bytes], context: Sequence[Wanted], sequence: Sequence[Wanted]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Array]]:
    messages = [parsed("SequenceExample", record, row) for row, record in enumerate(records)]
    found = {w.key: _in_context([message.context for message in messages], w) for w in context}
    lists: dict[str, Any] = {}
    lengths: dict[str, Array] = {}
    for wanted in sequence:
        held = [message.feature_lists.feature_list.get(wanted.key) for message in messages]
        steps = [None if one is None else one.feature for one in held]
        if isinstance(wanted, Sequenced):
            parts = [steps_of(s, Where(row), wanted) for row, s in enumerate(steps)]
            lists[wanted.key] = padded(parts, wanted)
            lengths[wanted.key] = np.array(list(map(len, parts)), np.int64)
        elif isinstance(wanted, Varying):
            lists[wanted.key] = _sparse_steps(steps, wanted)
        elif isinstance(wanted, Ragged):
            named = [message.feature_lists.feature_list for message in messages]
            lists[wanted.key] = ragged_steps(named, wanted)
    return found, lists, lengths


def _in_context(contexts: Sequence[Any], wanted: Wanted) -> Any:
    if not isinstance(wanted, Fixed):
        return varying_column(contexts, wanted)
    pairs = [(one.feature.get(wanted.key), Where(row)) for row, one in enumerate(contexts)]
    return np.stack([fixed_value(*pair, wanted) for pair in pairs])


def _sparse_steps(records: Sequence[Any], wanted: Varying) -> SparseTensor:
    """Return a variable-length feature list of all records as a SparseTensor of (record, step, value)."""
    lists = [lists_of_steps(steps or (), row, wanted) for row, steps in enumerate(records)]
    counts = np.array(list(map(len, lists)), np.int64)
    sizes = np.array([len(values) for steps in lists for values in steps], np.int64)
    values: list[Any] = []
    for held in chain.from_iterable(lists):
        values += held
    indices = np.empty((len(values), 3), np.int64)
    indices[:, 0] = np.repeat(np.repeat(np.arange(len(lists)), counts), sizes)
    indices[:, 1] = np.repeat(_counted(counts), sizes)
    indices[:, 2] = _counted(sizes)
    shape = np.array([len(lists), counts.max(initial=0), sizes.max(initial=0)])
    return SparseTensor(indices, array_of(values, wanted.dtype), shape)


def _counted(lengths: Array) -> Array:
    """Return the numbers from 0 up to each length, one after another."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
