"""Parsing serialized sequence examples: `tf.io.parse_sequence_example` and `tf.io.parse_single_sequence_example`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import described
from evenfeed.core.sparse_tensors import SparseTensor
from evenfeed.formats.example.example_parsing import first_of, records_of, varying_column
from evenfeed.formats.example.example_values import (
    Where,
    fixed_value,
    padded,
    parsed,
    steps_of,
    varying_value,
)
from evenfeed.formats.example.features import Fixed, Sequenced, Varying, Wanted, wanted_of


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
        sequence_features: The feature lists, by name: `FixedLenSequenceFeature` or `VarLenFeature`.
        example_name: Ignored; for compatibility.
        name: Ignored; for compatibility.

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
        {key: first_of(value) for key, value in found.items()},
        {key: first_of(value) for key, value in lists.items()},
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
        sequence_features: The feature lists, by name: `FixedLenSequenceFeature` or `VarLenFeature`.
        example_names: Ignored; for compatibility.
        name: Ignored; for compatibility.

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
    return _sequences(records.ravel().tolist(), context, sequence)


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
        if isinstance(wanted, Fixed):
            raise ValueError(
                described(
                    f"Unsupported FixedLenFeature for the feature list {wanted.key!r}.",
                    fix="pass FixedLenSequenceFeature(shape, dtype), or VarLenFeature(dtype).",
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
    return found, lists, lengths


def _in_context(contexts: Sequence[Any], wanted: Wanted) -> Any:
    if not isinstance(wanted, Fixed):
        return varying_column(contexts, wanted)
    pairs = [(one.feature.get(wanted.key), Where(row)) for row, one in enumerate(contexts)]
    return np.stack([fixed_value(*pair, wanted) for pair in pairs])


def _sparse_steps(records: Sequence[Any], wanted: Varying) -> SparseTensor:
    """Return a variable-length feature list of all records as a SparseTensor of (record, step, value)."""
    indices: list[tuple[int, int, int]] = []
    values: list[Any] = []
    longest = widest = 0
    for row, steps in enumerate(records):
        for step, feature in enumerate(steps or ()):
            found = varying_value(feature, Where(row, step), wanted).tolist()
            indices += [(row, step, place) for place in range(len(found))]
            values += found
            longest, widest = max(longest, step + 1), max(widest, len(found))
    held = np.empty(len(values), wanted.dtype)
    held[:] = values
    shape = np.array([len(records), longest, widest])
    return SparseTensor(np.array(indices, np.int64).reshape(-1, 3), held, shape)
