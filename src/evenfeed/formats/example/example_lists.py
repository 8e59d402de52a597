"""Parses features with any number of values of many serialized examples at once, in compiled loops.

An odd record (see `example_kernels`) is written again by protobuf with the requested features only, and is scanned then.
What is still odd does not match the request: code that parses record by record finds it, and raises.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.lazy import LazyModule
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts, joined
from evenfeed.formats.example.example_batches import places_of, values_at
from evenfeed.formats.example.example_protos import (
    Where,
    message_class,
    parsed,
    sequenced_value,
    varying_value,
)
from evenfeed.formats.example.features import Ragged, Sequenced, Varying, Wanted

if TYPE_CHECKING:
    from evenfeed.formats.example import example_kernels
else:
    example_kernels = LazyModule("evenfeed.formats.example.example_kernels")


@final
@dataclass(frozen=True)
class Lists:
    """The values of one feature in all records, one after another.

    Attributes:
        values: The values.
        splits: Where the values of each record start, and where the last one's end.
    """

    values: Array | Texts
    splits: Positions

    @property
    def lengths(self) -> Positions:
        """The number of values of each record."""
        return np.diff(self.splits)

    def parts(self, rows: int) -> Iterator["Lists"]:
        """Yield the values of `rows` records at a time."""
        values = np.asarray(self.values)
        for first in range(0, len(self.splits) - 1, rows):
            splits = self.splits[first : first + rows + 1]
            yield Lists(values[splits[0] : splits[-1]], splits - splits[0])

    def sparse(self) -> SparseTensor:
        """Return a matrix with one row per record."""
        lengths = self.lengths
        rows = np.repeat(np.arange(len(lengths)), lengths)
        indices = np.empty((len(rows), 2), np.int64)
        indices[:, 0] = rows
        np.subtract(np.arange(len(rows)), self.splits[rows], out=indices[:, 1])
        shape = np.array([len(lengths), lengths.max(initial=0)])
        return SparseTensor(indices, np.asarray(self.values), shape)

    def padded(self, wanted: Sequenced) -> Array:
        """Stack the records' arrays, padded to the longest."""
        lengths = self.lengths
        shape = (len(lengths), int(lengths.max(initial=0)), *wanted.shape)
        dense = np.full(shape, wanted.fill, wanted.dtype)
        dense[np.arange(shape[1]) < lengths[:, None]] = np.asarray(self.values)
        return dense

    def ragged(self, wanted: Ragged) -> RaggedTensor:
        """Return a ragged tensor with one row per record."""
        rows = RaggedTensor(np.asarray(self.values), self.splits)
        return rows.with_row_splits_dtype(wanted.splits_dtype)


Plain: TypeAlias = Varying | Sequenced | Ragged


def is_plain(wanted: Wanted) -> TypeGuard[Plain]:
    """Return True if the values of one feature are all that is requested, and may be any number."""
    plain_rows = isinstance(wanted, Ragged) and not wanted.partitions
    return isinstance(wanted, Varying | Sequenced) or plain_rows


def batch_of(held: Lists, wanted: Plain) -> Any:
    """Return what `parse_example` gives for a feature: a sparse tensor, a ragged one or an array."""
    if isinstance(wanted, Ragged):
        return held.ragged(wanted)
    return held.padded(wanted) if isinstance(wanted, Sequenced) else held.sparse()


def single_of(held: Lists, wanted: Plain) -> Any:
    """Return what `parse_single_example` gives for a feature of the only record."""
    values = np.asarray(held.values)
    if not isinstance(wanted, Varying):
        return values
    shape = np.array([len(values)], np.int64)
    return SparseTensor(np.arange(len(values))[:, None], values, shape)


def lists_of(records: Texts, wanted: Sequence[Plain]) -> list[Lists]:
    """Return the values of features of all records.

    Raises:
        InvalidArgumentError: A record is not a valid Example, or does not match the request.
    """
    found = at_once(records, wanted) if is_worth_it(len(records)) else None
    if found is not None:
        return found
    examples = [parsed("Example", record, row).features for row, record in enumerate(records)]
    return [_one_by_one(examples, one) for one in wanted]


def at_once(records: Texts, wanted: Sequence[Plain]) -> list[Lists] | None:
    """Return the values of features of all records, by compiled loops; None if records do not match the request."""
    asked = [values_asked(one) for one in wanted]
    keys = {one.key: one for one in asked}
    if any(keys[one.key].dtype != one.dtype for one in asked):
        return None
    found = _scanned(records, list(keys.values()))
    if found is None:
        return None
    by_key = dict(zip(keys, found, strict=True))
    lists = [_grouped(by_key[of.key], one) for of, one in zip(asked, wanted, strict=True)]
    return None if None in lists else [one for one in lists if one is not None]


def _one_by_one(examples: Sequence[Any], wanted: Plain) -> Lists:
    held = [
        (one.feature.get(values_asked(wanted).key), Where(row)) for row, one in enumerate(examples)
    ]
    if isinstance(wanted, Sequenced):
        parts = [sequenced_value(*one, wanted) for one in held]
        empty = np.empty((0, *wanted.shape), wanted.dtype)
    else:
        parts = [varying_value(*one, values_asked(wanted)) for one in held]
        empty = np.empty(0, values_asked(wanted).dtype)
    return Lists(np.concatenate([empty, *parts]), np.cumsum([0, *map(len, parts)]))


def values_asked(wanted: Plain) -> Varying:
    """Return the values that a feature is made of."""
    if isinstance(wanted, Ragged):
        return wanted.values
    return Varying(wanted.key, wanted.dtype) if isinstance(wanted, Sequenced) else wanted


def _grouped(values: Lists, wanted: Plain) -> Lists | None:
    """Return values as arrays of the requested shape; None if they do not divide into such arrays."""
    if not isinstance(wanted, Sequenced) or not wanted.shape:
        return values
    size = max(1, wanted.count)
    if (values.lengths % size).any():
        return None
    splits = values.splits // size
    return Lists(np.asarray(values.values).reshape(int(splits[-1]), *wanted.shape), splits)


def _scanned(records: Texts, wanted: Sequence[Varying]) -> list[Lists] | None:
    counts = [example_kernels.ANY] * len(wanted)
    places, sizes, odd = places_of(records, wanted, counts)
    if odd.any():
        records = _written_again(records, np.flatnonzero(odd), wanted)
        places, sizes, odd = places_of(records, wanted, counts)
        if odd.any():
            return None
    splits = np.zeros((len(wanted), len(records) + 1), np.int64)
    np.cumsum(sizes, axis=1, out=splits[:, 1:])
    return [
        Lists(values_at(records.data, place, ends, feature.dtype), ends)
        for feature, place, ends in zip(wanted, places, splits, strict=True)
    ]


def _written_again(records: Texts, rows: Positions, wanted: Sequence[Varying]) -> Texts:
    parts: list[bytes] = []
    for row in rows.tolist():
        found = parsed("Example", records.text(row), row).features.feature
        kept = {one.key: found[one.key] for one in wanted if one.key in found}
        for feature in kept.values():
            feature.DiscardUnknownFields()
        features = message_class("Features")(feature=kept)
        parts.append(message_class("Example")(features=features).SerializeToString())
    order = np.arange(len(records))
    order[rows] = len(records) + np.arange(len(rows))
    return joined([records, Texts.of(parts)]).take(order)
