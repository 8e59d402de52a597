"""Parsing serialized sequence examples: `tf.io.parse_sequence_example` and `tf.io.parse_single_sequence_example`."""

from collections.abc import Sequence
from typing import Any

from evenfeed.core.conversion import Array
from evenfeed.core.errors import described
from evenfeed.core.handles import Handle
from evenfeed.core.promised_shapes import promise
from evenfeed.core.tensor_types import host_tensor
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.traced.kernel_stages import results_of
from evenfeed.formats.example.example_lists import is_plain
from evenfeed.formats.example.example_parsing import (
    columns_of,
    first_of,
    lengths_of,
    parts_of,
    records_of,
    tensors_of,
)
from evenfeed.formats.example.example_protos import parsed
from evenfeed.formats.example.features import Fixed, Placed, Ragged, Sequenced, Wanted, wanted_of
from evenfeed.formats.example.ragged_rows import ragged_steps
from evenfeed.formats.example.sequence_columns import Contexts, ContextsKernel, Count, StepsKernel
from evenfeed.formats.example.sequence_steps import batch_of_steps, contexts_of, steps_of_lists


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
    if isinstance(serialized, Handle):
        return _parts_of_both(serialized, context, sequence, single=True)[:2]
    records = records_of(serialized, single=True)
    found, lists, _ = _sequences(records.ravel().tolist(), context, sequence)
    return (
        tensors_of({key: first_of(value) for key, value in found.items()}, context, []),
        tensors_of({key: first_of(value) for key, value in lists.items()}, sequence, []),
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
    if isinstance(serialized, Handle):
        return _parts_of_both(serialized, context, sequence, single=False)
    records = records_of(serialized, single=False)
    found, lists, lengths = _sequences(records.ravel().tolist(), context, sequence)
    rows = lengths_of(serialized)
    counted = {key: host_tensor(value) for key, value in lengths.items()}
    for tensor in counted.values():
        promise(tensor, rows)
    return tensors_of(found, context, rows), tensors_of(lists, sequence, rows), counted


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


def _parts_of_both(
    serialized: Handle, context: tuple[Wanted, ...], sequence: tuple[Wanted, ...], *, single: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the placeholders of contexts, feature lists and list lengths, in a trace."""
    plain = tuple(one for one in sequence if is_plain(one))
    if len(plain) < len(sequence):
        raise TypeError("Feature lists whose values depend on other lists are parsed one by one.")
    contexts = results_of(ContextsKernel((Contexts(),), single), serialized)
    assert contexts is not None
    found = parts_of(contexts[0], context, single=single) if context else {}
    counts = () if single else tuple(Count(one) for one in plain if isinstance(one, Sequenced))
    lists: list[Any] = []
    if plain:
        results = results_of(StepsKernel((*plain, *counts), single), serialized)
        assert results is not None
        lists = list(results)
    keys = [one.key for one in plain]
    lengths = dict(zip([one.of.key for one in counts], lists[len(plain) :], strict=True))
    return found, dict(zip(keys, lists[: len(plain)], strict=True)), lengths


def _sequences(
    serialized: list[bytes], context: Sequence[Wanted], sequence: Sequence[Wanted]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Array]]:
    records = Texts.of(serialized)
    found = columns_of(contexts_of(records), context)
    plain = [one for one in sequence if is_plain(one)]
    steps = dict(zip(plain, steps_of_lists(records, plain), strict=True)) if plain else {}
    lists: dict[str, Any] = {one.key: batch_of_steps(held, one) for one, held in steps.items()}
    lengths = {one.key: held.counts for one, held in steps.items() if isinstance(one, Sequenced)}
    rest = [one for one in sequence if isinstance(one, Ragged) and one.key not in lists]
    if rest:
        messages = [parsed("SequenceExample", record, row) for row, record in enumerate(serialized)]
        named = [message.feature_lists.feature_list for message in messages]
        lists |= {one.key: ragged_steps(named, one) for one in rest}
    contexts = {one.key: found[one.key] for one in context}
    return contexts, {one.key: lists[one.key] for one in sequence}, lengths
