"""Rearranges ragged tensors: concat, stack, expand_dims, squeeze, tile and reverse."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.building import len_of
from evenfeed.core.ragged.ragged_functions import joined
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.row_partitions import known_axis


def concat(values: Sequence[Any], axis: Any, name: str | None = None) -> Any:
    """Concatenate ragged and dense tensors along an axis; other lengths may differ along ragged axes."""
    del name
    parts = _alike([v if isinstance(v, RaggedTensor) else host_array(v) for v in values])
    return _concatenated(parts, known_axis(axis, len(parts[0].shape)))


def stack(values: Sequence[Any], axis: Any = 0, name: str | None = None) -> Any:
    """Stack ragged and dense tensors along a new axis."""
    del name
    parts = _alike([v if isinstance(v, RaggedTensor) else host_array(v) for v in values])
    place = known_axis(axis, len(parts[0].shape) + 1)
    found = _concatenated([expand_dims(part, place) for part in parts], place)
    # As in TensorFlow, the result does not know that its rows have one length.
    return RaggedTensor(found.values, found.splits) if place <= 1 else found


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:  # noqa: A002 - TensorFlow's name
    """Insert an axis of length 1."""
    del name
    place = known_axis(axis, len(input.shape) + 1)
    if not isinstance(input, RaggedTensor):
        return np.expand_dims(input, place)
    if place == 0:
        return RaggedTensor.from_uniform_row_length(input, len_of(input), nrows=1)
    if place == 1:
        return RaggedTensor.from_uniform_row_length(input, 1, nrows=len_of(input))
    return input.with_values(expand_dims(input.values, place - 1))


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Any:  # noqa: A002 - TensorFlow's name
    """Remove axes of length 1."""
    del name
    if axis is None:
        raise ValueError(
            described(
                "squeeze of a RaggedTensor must have an axis argument.",
                fix="pass the axes to remove.",
            )
        )
    rank = len(input.shape)
    places = {known_axis(one, rank) for one in np.atleast_1d(host_array(axis)).tolist()}
    found = input
    for place in sorted(places, reverse=True):
        found = _without_axis(found, place)
    return found


def tile(input: Any, multiples: Any, name: str | None = None) -> Any:  # noqa: A002 - TensorFlow's name
    """Repeat a ragged tensor along each axis."""
    del name
    counts = host_array(multiples).tolist()
    if len(counts) != len(input.shape) or min(counts) < 0:
        raise InvalidArgumentError(
            f"multiples must be one count for each of {len(input.shape)} axes, but got {counts}.",
            fix="pass one number for each axis, 1 to leave it.",
        )
    return _tiled(input, counts)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """Reverse a ragged tensor along some axes."""
    del name
    rank = len(tensor.shape)
    places = [known_axis(one, rank) for one in np.atleast_1d(host_array(axis)).tolist()]
    found = tensor
    for place in places:
        found = _reversed(found, place)
    return found


def _alike(parts: list[Any]) -> list[Any]:
    """Return tensors of one rank and dtype; dense ones become ragged like the others."""
    kinds = {dtypes.as_dtype(part.dtype) for part in parts}
    ranks = {len(part.shape) for part in parts}
    if len(kinds) > 1 or len(ranks) > 1:
        shown = ", ".join(f"{dtypes.name_of(p.dtype)} of rank {len(p.shape)}" for p in parts)
        raise ValueError(
            described(
                f"The tensors must have one dtype and rank, but they are {shown}.",
                fix="call evenfeed.cast or evenfeed.expand_dims first.",
            )
        )
    deepest = max(part.ragged_rank for part in parts if isinstance(part, RaggedTensor))
    splits = next(part.splits.dtype for part in parts if isinstance(part, RaggedTensor))
    return [
        part
        if isinstance(part, RaggedTensor)
        else RaggedTensor.from_tensor(part, ragged_rank=deepest, row_splits_dtype=splits)
        for part in parts
    ]


def _concatenated(parts: Sequence[Any], axis: int) -> Any:
    if not any(isinstance(part, RaggedTensor) for part in parts):
        return computed_tensor(np.concatenate([np.asarray(part) for part in parts], axis=axis))
    if axis == 0:
        return joined(parts)
    rows = [p if isinstance(p, RaggedTensor) else RaggedTensor.from_tensor(p) for p in parts]
    counts = {part.row_count for part in rows}
    if len(counts) > 1:
        raise _unlike(f"they have {sorted(counts)} rows")
    if axis > 1:
        if any(not np.array_equal(part.splits, rows[0].splits) for part in rows):
            raise _unlike("their rows differ in length")
        return rows[0].with_values(_concatenated([part.values for part in rows], axis - 1))
    count = counts.pop()
    # Row i of the result is row i of each part, one after the other.
    order = (np.arange(count)[:, None] + np.arange(len(rows)) * count).reshape(-1)
    mixed = joined([RaggedTensor(part.values, part.splits) for part in rows]).rows(order)
    lengths = [part.uniform for part in rows if part.uniform is not None]
    uniform = sum(lengths) if len(lengths) == len(rows) else None
    return RaggedTensor(mixed.values, mixed.splits[:: len(rows)], uniform)


def _unlike(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The tensors cannot be concatenated: {why}.",
        fix="pass tensors that differ only along the axis.",
    )


def _without_axis(rows: Any, axis: int) -> Any:
    if not isinstance(rows, RaggedTensor):
        if rows.shape[axis] != 1:
            raise _not_one(axis)
        return np.squeeze(rows, axis)
    if axis == 0:
        if rows.row_count != 1:
            raise _not_one(axis)
        return rows.row(0)
    if axis == 1:
        if (np.diff(rows.splits) != 1).any():
            raise _not_one(axis)
        return rows.values
    return rows.with_values(_without_axis(rows.values, axis - 1))


def _not_one(axis: int) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The given axis (axis = {axis}) is not squeezable: its length is not 1.",
        fix="pass an axis of length 1.",
    )


def _tiled(rows: Any, counts: list[int]) -> Any:
    if not isinstance(rows, RaggedTensor):
        return np.tile(rows, counts)
    times, each, *inner = counts
    values = _tiled(rows.values, [1, *inner]) if set(inner) - {1} else rows.values
    found = RaggedTensor(values, rows.splits, rows.uniform)
    if each != 1:
        if each == 0:
            none = found.rows(np.zeros(0, np.int64))
            found = RaggedTensor(none.values, np.zeros_like(rows.splits), rows.uniform and 0)
        else:
            repeated = found.rows(np.repeat(np.arange(rows.row_count), each))
            length = None if rows.uniform is None else rows.uniform * each
            found = RaggedTensor(repeated.values, repeated.splits[::each], length)
    return found if times == 1 else found.rows(np.tile(np.arange(rows.row_count), times))


def _reversed(rows: Any, axis: int) -> Any:
    if not isinstance(rows, RaggedTensor):
        return np.flip(rows, axis)
    if axis == 0:
        return rows.rows(np.arange(rows.row_count)[::-1])
    if axis > 1:
        return rows.with_values(_reversed(rows.values, axis - 1))
    splits = rows.splits
    total = int(splits[-1])
    ends = np.repeat(splits[:-1] + splits[1:] - 1, np.diff(splits))
    order = ends - np.arange(total)
    inner = rows.values
    values = inner.rows(order) if isinstance(inner, RaggedTensor) else inner[order]
    return RaggedTensor(values, splits, rows.uniform)
