"""Parses the feature lists of many serialized sequence examples at once, in compiled loops.

The context of a SequenceExample has the bytes of an Example, so it is cut off and parsed as one. What is left are the
feature lists. An odd record (see `example_kernels`) is written again by protobuf, and is cut then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.lazy import LazyModule
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts, joined
from evenfeed.formats.example.example_batches import places_of, values_at
from evenfeed.formats.example.example_layouts import LIST_TAGS
from evenfeed.formats.example.example_lists import Lists, Plain, values_asked
from evenfeed.formats.example.example_protos import (
    Where,
    array_of,
    lists_of_steps,
    message_class,
    parsed,
    steps_of,
)
from evenfeed.formats.example.features import Ragged, Sequenced, Varying

if TYPE_CHECKING:
    from evenfeed.formats.example import example_kernels
else:
    example_kernels = LazyModule("evenfeed.formats.example.example_kernels")

# protobuf takes as long for one sequence as for this many examples.
_EXAMPLES: Final = 8


@final
@dataclass(frozen=True)
class StepLists:
    """The values of one feature list in all records.

    Attributes:
        lists: The values of each step, one step after another.
        splits: Where the steps of each record start, and where the last one's end.
    """

    lists: Lists
    splits: Positions

    @property
    def counts(self) -> Positions:
        """The number of steps of each record."""
        return np.diff(self.splits)

    def parts(self, rows: int) -> Iterator["StepLists"]:
        """Yield the steps of `rows` records at a time."""
        values, ends = np.asarray(self.lists.values), self.lists.splits
        for first in range(0, len(self.splits) - 1, rows):
            splits = self.splits[first : first + rows + 1]
            mine = ends[splits[0] : splits[-1] + 1]
            lists = Lists(values[mine[0] : mine[-1]], mine - mine[0])
            yield StepLists(lists, splits - splits[0])

    def arrays(self, wanted: Sequenced) -> Lists:
        """Return each step as an array."""
        values = self.lists.values
        if wanted.shape:
            values = np.asarray(values).reshape(int(self.splits[-1]), *wanted.shape)
        return Lists(values, self.splits)

    def ragged(self, wanted: Ragged) -> RaggedTensor:
        """Return a ragged tensor of records, steps and values."""
        steps = RaggedTensor(np.asarray(self.lists.values), self.lists.splits)
        return RaggedTensor(steps, self.splits).with_row_splits_dtype(wanted.splits_dtype)

    def sparse(self) -> SparseTensor:
        """Return a sparse tensor of records, steps and values."""
        counts, sizes = self.counts, self.lists.lengths
        indices = np.empty((int(sizes.sum()), 3), np.int64)
        indices[:, 0] = np.repeat(np.repeat(np.arange(len(counts)), counts), sizes)
        indices[:, 1] = np.repeat(_counted(counts), sizes)
        indices[:, 2] = _counted(sizes)
        shape = np.array([len(counts), counts.max(initial=0), sizes.max(initial=0)])
        return SparseTensor(indices, np.asarray(self.lists.values), shape)


def batch_of_steps(held: StepLists, wanted: Plain) -> Any:
    """Return what `parse_sequence_example` gives for a feature list: a sparse tensor, a ragged one or an array."""
    if isinstance(wanted, Ragged):
        return held.ragged(wanted)
    if isinstance(wanted, Sequenced):
        return held.arrays(wanted).padded(wanted)
    return held.sparse()


def _is_many(records: Texts) -> bool:
    return is_worth_it(_EXAMPLES * len(records))


def contexts_of(records: Texts) -> Texts:
    """Return the context of each SequenceExample, serialized as an Example.

    Raises:
        InvalidArgumentError: A record is not a valid SequenceExample.
    """
    found = _found(records, []) if _is_many(records) else None
    if found is not None:
        return found.contexts
    messages = [parsed("SequenceExample", record, row) for row, record in enumerate(records)]
    kind = message_class("Example")
    return Texts.of([kind(features=one.context).SerializeToString() for one in messages])


def steps_of_lists(records: Texts, wanted: Sequence[Plain]) -> list[StepLists]:
    """Return the feature lists of all records.

    Raises:
        InvalidArgumentError: A record is not a valid SequenceExample, or does not match the request.
    """
    found = steps_at_once(records, wanted) if _is_many(records) else None
    if found is not None:
        return found
    messages = [parsed("SequenceExample", record, row) for row, record in enumerate(records)]
    lists = [message.feature_lists.feature_list for message in messages]
    return [_one_by_one(lists, one) for one in wanted]


def steps_at_once(records: Texts, wanted: Sequence[Plain]) -> list[StepLists] | None:
    """Return the feature lists of all records, by compiled loops; None if records do not match the request."""
    asked = [values_asked(one) for one in wanted]
    keys = {one.key: one for one in asked}
    found = _found(records, list(keys.values()))
    if found is None:
        return None
    by_key = dict(zip(keys, zip(found.places, found.sizes, strict=True), strict=True))
    steps: list[StepLists] = []
    for one, of in zip(wanted, asked, strict=True):
        held = _steps(found.lists.data, *by_key[of.key], one, of)
        if held is None:
            return None
        steps.append(held)
    return steps


@final
@dataclass(frozen=True)
class _Found:
    """Sequence examples, cut in two, and where each requested list starts and how many steps it has."""

    contexts: Texts
    lists: Texts
    places: Array
    sizes: Array


_Cut: TypeAlias = tuple[_Found, Array]


def _found(records: Texts, wanted: Sequence[Varying]) -> _Found | None:
    found, odd = _cut(records, wanted)
    if odd.any():
        found, odd = _cut(_written_again(records, np.flatnonzero(odd)), wanted)
    return None if odd.any() else found


def _cut(records: Texts, wanted: Sequence[Varying]) -> _Cut:
    """Cut records, and return a mask of odd ones."""
    middles = np.empty(len(records), np.int64)
    example_kernels.find_middles(records.data, records.starts, records.stops, middles)
    wrong = middles < 0
    middles[wrong] = records.starts[wrong]
    contexts = Texts(records.data, records.starts, middles, records.origins)
    lists = Texts(records.data, middles, records.stops, records.origins)
    counts = [example_kernels.ANY] * len(wanted)
    places, sizes, odd = places_of(lists, wanted, counts, example_kernels.FEATURE_LISTS)
    return _Found(contexts, lists, places, sizes), wrong | odd | places_of(contexts, [], [])[2]


def _written_again(records: Texts, rows: Positions) -> Texts:
    parts: list[bytes] = []
    for row in rows.tolist():
        message = parsed("SequenceExample", records.text(row), row)
        message.DiscardUnknownFields()
        parts.append(message.SerializeToString())
    order = np.arange(len(records))
    order[rows] = len(records) + np.arange(len(rows))
    return joined([records, Texts.of(parts)]).take(order)


def _steps(
    data: Array, places: Positions, counts: Positions, wanted: Plain, asked: Varying
) -> StepLists | None:
    """Return the steps of all records; None if some do not match the request."""
    must_exist = isinstance(wanted, Sequenced) and not wanted.may_miss
    if must_exist and (places == example_kernels.MISSING).any():
        return None
    splits = np.append(np.int64(0), np.cumsum(counts))
    starts, stops, begins, sizes = np.empty((4, int(splits[-1])), np.int64)
    example_kernels.find_texts(data, places, splits, starts, stops)
    tag = LIST_TAGS[asked.dtype]
    if not example_kernels.find_steps(data, starts, stops, tag, begins, sizes):
        return None
    if isinstance(wanted, Sequenced):
        is_array = (sizes == wanted.count) & (begins != example_kernels.MISSING)
        if not is_array.all():
            return None
    ends = np.append(np.int64(0), np.cumsum(sizes))
    return StepLists(Lists(values_at(data, begins, ends, asked.dtype), ends), splits)


def _one_by_one(records: Sequence[Any], wanted: Plain) -> StepLists:
    asked = values_asked(wanted)
    held = [lists.get(asked.key) for lists in records]
    features = [None if one is None else one.feature for one in held]
    if isinstance(wanted, Sequenced):
        parts = [steps_of(steps, Where(row), wanted) for row, steps in enumerate(features)]
        splits = np.cumsum([0, *map(len, parts)])
        values = np.concatenate([np.empty(0, wanted.dtype), *(part.ravel() for part in parts)])
        return StepLists(Lists(values, np.arange(int(splits[-1]) + 1) * wanted.count), splits)
    lists = [lists_of_steps(steps or (), row, asked) for row, steps in enumerate(features)]
    ends = np.cumsum([0, *(len(step) for steps in lists for step in steps)])
    flat: list[Any] = []
    for steps in lists:
        for step in steps:
            flat += step
    return StepLists(Lists(array_of(flat, asked.dtype), ends), np.cumsum([0, *map(len, lists)]))


def _counted(lengths: Array) -> Array:
    """Return the numbers from 0 up to each length, one after another."""
    starts = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
