"""The functions of `tf.ragged`: they build, stack and filter ragged tensors."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.building import len_of
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.row_partitions import (
    from_lengths,
    from_rowids,
    splits_dtype,
    whole_vector,
)
from evenfeed.core.ragged.wrong_dtypes import WrongDtypeError


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """Build a ragged tensor from nested lists.

    Args:
        pylist: Nested lists of numbers or text, all nested equally deep.
        dtype: The dtype of the values; by default as for `evenfeed.constant`.
        ragged_rank: How many axes are ragged; by default all but the first, and the inner ones.
        inner_shape: The shape of the values inside of the ragged axes.
        name: Accepted for compatibility.
        row_splits_dtype: int64 or int32.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.constant([[[1], [2, 3]], []]).shape
        TensorShape([2, None, None])
    """
    del name
    splits_dtype(row_splits_dtype)
    plain = _plain(pylist)
    depth = _depth(plain)
    inner = None if inner_shape is None else tuple(np.atleast_1d(host_array(inner_shape)).tolist())
    if ragged_rank is None:
        ragged_rank = max(0, depth - 1 - (len(inner) if inner is not None else 0))
    if ragged_rank == 0 or not isinstance(plain, list):
        return computed_tensor(host_array(plain, None if dtype is None else dtypes.as_dtype(dtype)))
    levels: list[Array] = []
    rows = cast("list[Any]", plain)
    for _ in range(ragged_rank):
        levels.append(np.fromiter(map(len, rows), np.int64, len(rows)))
        rows = list(chain.from_iterable(rows))
    values = _values(rows, dtype, depth - ragged_rank, inner)
    found = RaggedTensor.from_nested_row_lengths(values, levels)
    return found.with_row_splits_dtype(row_splits_dtype)


def range_(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Build rows of counting numbers: row i counts from `starts[i]` to `limits[i]` in steps of `deltas[i]`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.range([3, 0, 2]).to_list()
        [[0, 1, 2], [], [0, 1]]
    """
    del name
    first, stop = (0, starts) if limits is None else (starts, limits)
    known = [
        host_array(one, None if dtype is None else dtypes.as_dtype(dtype))
        for one in (first, stop, deltas)
    ]
    common = np.result_type(*known) if dtype is None else dtypes.as_dtype(dtype)
    rows = zip(*(np.atleast_1d(one).tolist() for one in np.broadcast_arrays(*known)), strict=True)
    made: list[Array] = []
    for start, limit, delta in rows:
        if delta == 0:
            raise InvalidArgumentError("deltas must not be 0.", fix="pass a step for each row.")
        made.append(np.arange(start, limit, delta, dtype=common))
    lengths = np.fromiter(map(len, made), np.int64, len(made))
    values = np.concatenate(made) if made else np.zeros(0, common)
    return RaggedTensor.from_row_lengths(values, lengths).with_row_splits_dtype(row_splits_dtype)


range_.__name__ = range_.__qualname__ = "range"


def stack(values: Sequence[Any], axis: int = 0, name: str | None = None) -> Any:
    """Stack tensors of one rank along a new axis; their lengths may differ.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])]).to_list()
        [[1, 2], [3]]
    """
    del name
    parts = [part if isinstance(part, RaggedTensor) else host_array(part) for part in values]
    if axis in (0, -1 - len(parts[0].shape)):
        found = stacked(parts)
        dense = not any(isinstance(part, RaggedTensor) for part in parts)
        # TensorFlow takes the splits from the shapes of dense tensors, which are int32.
        is_ragged = isinstance(found, RaggedTensor)
        return found.with_row_splits_dtype(dtypes.int32) if dense and is_ragged else found
    if axis == 1:
        rows = [stacked(list(row)) for row in zip(*parts, strict=True)]
        return stacked(rows)
    raise InvalidArgumentError(
        f"ragged.stack supports axis 0 and 1, but got {axis}.", fix="stack along the outer axes."
    )


def stacked(parts: Sequence[Any]) -> Any:
    """Stack arrays or ragged tensors of one rank as the rows of a ragged tensor."""
    if not len(parts[0].shape):
        return computed_tensor(np.stack([np.asarray(part) for part in parts]))
    lengths = np.array([len_of(part) for part in parts], np.int64)
    return RaggedTensor.from_row_lengths(joined(parts), lengths)


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate arrays or ragged tensors along the first axis; inner lengths may differ."""
    first = parts[0]
    is_ragged = any(isinstance(part, RaggedTensor) for part in parts)
    if not is_ragged and len({part.shape[1:] for part in parts}) == 1:
        return computed_tensor(np.concatenate([np.asarray(part) for part in parts]))
    rows = [
        part if isinstance(part, RaggedTensor) else RaggedTensor.from_tensor(part) for part in parts
    ]
    lengths = np.concatenate([np.asarray(part.row_lengths()) for part in rows])
    values = joined([part.values for part in rows])
    uniform = {None if r.uniform_row_length is None else int(r.uniform_row_length) for r in rows}
    length = uniform.pop() if len(uniform) == 1 and isinstance(first, RaggedTensor) else None
    return RaggedTensor(values, from_lengths(lengths, 0, check=False), length)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """Keep the values where `mask` is True; the rows of a matrix become ragged.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]).to_list()
        [[1], [3, 4]]
    """
    del name
    if isinstance(mask, RaggedTensor):
        if mask.dtype != dtypes.bool:
            raise WrongDtypeError(
                f"A mask has bools, but got {dtypes.name_of(mask.dtype)}.", fix="compare it first."
            )
        rows = data if isinstance(data, RaggedTensor) else RaggedTensor.from_tensor(data)
        if not np.array_equal(rows.row_splits, mask.row_splits):
            raise InvalidArgumentError(
                "data and mask have rows of different lengths.", fix="pass one bool for each value."
            )
        values = boolean_mask(rows.values, mask.values)
        splits = np.asarray(mask.row_splits)
        if len(mask.shape) == 2:
            # A mask of higher rank keeps the rows of this axis, and picks from the rows within them.
            kept = np.asarray(mask.values)
            splits = np.append(0, np.cumsum(kept)).astype(splits.dtype)[splits]
        return RaggedTensor(values, splits).with_row_splits_dtype(splits.dtype)
    known = host_array(mask, dtypes.bool)
    is_ragged = isinstance(
        data, RaggedTensor
    )  # whose inner rows are compared with those of the mask
    whole = (len_of(data), *known.shape[1:]) if is_ragged else host_array(data).shape
    if not known.ndim or known.shape != whole[: known.ndim]:
        raise ValueError(
            described(
                f"A mask of shape {known.shape} does not fit data of shape {tuple(data.shape) if is_ragged else whole}.",
                fix="pass a mask with the lengths of the outer axes.",
            )
        )
    if isinstance(data, RaggedTensor):
        if known.ndim > 1:
            dtype = data.row_splits.dtype
            return boolean_mask(data, RaggedTensor.from_tensor(known, row_splits_dtype=dtype))
        return data.rows(np.flatnonzero(known))
    found: Any = computed_tensor(host_array(data)[known])
    if known.ndim > 1:
        found = RaggedTensor.from_row_lengths(found, known.sum(axis=-1).reshape(-1))
    for length in reversed(known.shape[1:-1]):
        counts = np.full(len_of(found) // length if length else 0, length, np.int64)
        found = RaggedTensor.from_row_lengths(found, counts)
    return found


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with the flat values of ragged tensors, and put its result into their rows.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.map_flat_values(tf.square, tf.ragged.constant([[1, 2], [3]])).to_list()
        [[1, 4], [9]]
    """
    given = [*args, *kwargs.values()]
    rows = next((one for one in given if isinstance(one, RaggedTensor)), None)

    def flat(one: Any) -> Any:
        return one.flat_values if isinstance(one, RaggedTensor) else one

    found = op(*map(flat, args), **{key: flat(value) for key, value in kwargs.items()})
    return found if rows is None else rows.with_flat_values(found)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Any:
    """Return the row number of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.row_splits_to_segment_ids([0, 2, 3]).tolist()
        [0, 0, 1]
    """
    del name
    lengths = np.diff(whole_vector(splits, "splits"))
    dtype = lengths.dtype if out_type is None else dtypes.as_dtype(out_type)
    return computed_tensor(np.repeat(np.arange(len(lengths)), lengths).astype(dtype))


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Any:
    """Return where each row starts, given the row number of each value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.segment_ids_to_row_splits([0, 0, 2]).tolist()
        [0, 2, 2, 3]
    """
    del name
    ids = whole_vector(segment_ids, "segment_ids")
    found = from_rowids(ids, None if num_segments is None else int(num_segments), len(ids))
    return computed_tensor(found if out_type is None else found.astype(dtypes.as_dtype(out_type)))


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> Any:
    """Return rows of the values that have the same partition number.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ragged.stack_dynamic_partitions(["a", "b", "c"], [1, 0, 1], 3).to_list()
        [[b'b'], [b'a', b'c'], []]
    """
    del name
    if isinstance(partitions, RaggedTensor):
        flat = data.flat_values if isinstance(data, RaggedTensor) else data
        return stack_dynamic_partitions(flat, partitions.flat_values, num_partitions)
    values = data if isinstance(data, RaggedTensor) else host_array(data)
    numbers, count = host_array(partitions), int(num_partitions)
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
        raise InvalidArgumentError(
            f"partitions must be from 0 to {count - 1}, but are from {numbers.min()} to {numbers.max()}.",
            fix="pass a larger num_partitions.",
        )
    if not isinstance(values, RaggedTensor):
        values = values.reshape(-1, *values.shape[numbers.ndim :])
    flat_numbers = numbers.reshape(-1)
    order = np.argsort(flat_numbers, kind="stable")
    held = values.rows(order) if isinstance(values, RaggedTensor) else values[order]
    found = RaggedTensor.from_value_rowids(held, flat_numbers[order], nrows=count)
    is_ragged = isinstance(values, RaggedTensor)
    return found.with_row_splits_dtype(values.splits.dtype) if is_ragged else found


def _plain(value: Any) -> Any:
    """Return nested lists instead of tuples and arrays."""
    if isinstance(value, RaggedTensor):
        return value.to_list()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in cast("Sequence[Any]", value)]
    return host_array(value).tolist() if is_tensor(value) else value


def _depth(value: Any) -> int:
    """Return how deep lists are nested. Raises ValueError if that differs."""
    if not isinstance(value, list):
        return 0
    parts = cast("list[Any]", value)
    scalars = [part for part in parts if not isinstance(part, list)]
    if scalars:
        if len(scalars) < len(parts):
            raise ValueError(
                described(
                    "All scalar values must have the same nesting depth.",
                    fix="put each value into as many lists as the others.",
                )
            )
        return 1
    return 1 + max(map(_depth, parts), default=0)


def _values(rows: list[Any], dtype: Any, depth: int, inner: tuple[int, ...] | None) -> Array:
    known = None if dtype is None else dtypes.as_dtype(dtype)
    if not rows:
        shape = (0, *(inner or (0,) * (depth - 1)))
        return np.zeros(shape, known or dtypes.float32)
    array = host_array(rows, known)
    return array if inner is None else array.reshape(len(rows), *inner)
