"""The NumPy calls for operations of JAX that move numbers within a row, pick them, or put them in order."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array

Apply = Callable[..., Array]

# NumPy and XLA may treat NaN and the sign of zero in different ways.
_OF_INTEGERS: Final = ("argmax", "argmin", "cumsum", "sort")


def view_of(name: str, params: dict[str, Any]) -> Apply | None:
    """Return the NumPy call that returns each row in another order, without a copy; None if there is none."""
    if name == "rev":
        return partial(np.flip, axis=tuple(axis + 1 for axis in params["dimensions"]))
    if name == "transpose":
        return partial(np.transpose, axes=(0, *(axis + 1 for axis in params["permutation"])))
    return None


def move_of(name: str, params: dict[str, Any], avals: Sequence[Any]) -> Apply | None:
    """Return the NumPy call that makes new rows of one column; None if there is none.

    Args:
        name: The name of the primitive.
        params: Its settings.
        avals: The shapes and dtypes of its operands, of which the first is the column.
    """
    if name in _OF_INTEGERS and avals[0].dtype.kind == "f":
        return None
    match name:
        case "pad":
            sides = [(int(low), int(high)) for low, high, _ in params["padding_config"]]
            between = any(inner for *_, inner in params["padding_config"])
            return None if between or min(map(min, sides), default=0) < 0 else partial(_pad, sides)
        case "tile":
            return partial(np.tile, reps=(1, *params["reps"]))
        case "sort" if len(avals) == 1:
            return partial(np.sort, axis=params["dimension"] + 1)
        case "cumsum" if not params["reverse"]:
            return partial(np.cumsum, axis=params["axis"] + 1, dtype=avals[0].dtype)
        case "argmax" | "argmin" if avals[0].shape[params["axes"][0]]:
            find = np.argmax if name == "argmax" else np.argmin
            return partial(_found, find, params["axes"][0] + 1, params["index_dtype"])
        case _:
            return None


def _pad(sides: Sequence[tuple[int, int]], column: Array, value: Array) -> Array:
    lengths = zip(column.shape[1:], sides, strict=True)
    out = np.empty((len(column), *(low + n + high for n, (low, high) in lengths)), column.dtype)
    out[...] = value
    cuts = zip(column.shape[1:], sides, strict=True)
    out[(slice(None), *(slice(low, low + n) for n, (low, _) in cuts))] = column
    return out


def _found(find: Callable[..., Any], axis: int, dtype: Any, column: Array) -> Array:
    return np.asarray(find(column, axis=axis)).astype(dtype)


def picking_of(
    params: dict[str, Any], avals: Sequence[Any], by_row: Sequence[bool]
) -> Apply | None:
    """Return the NumPy call for a `gather` of whole entries along the first axis; None if it does something else.

    It raises if an index is out of range.

    Args:
        params: The settings of the primitive.
        avals: The shapes and dtypes of the values and the indices.
        by_row: Whether each of them has a row for each element.
    """
    values, indices = avals
    numbers, rest = params["dimension_numbers"], values.shape[1:]
    kept = tuple(range(len(indices.shape) - 1, len(indices.shape) - 1 + len(rest)))
    is_plain = (
        numbers.collapsed_slice_dims == (0,)
        and numbers.start_index_map == (0,)
        and not numbers.operand_batching_dims
        and numbers.offset_dims == kept
        and tuple(params["slice_sizes"]) == (1, *rest)
    )
    return partial(_picked, *by_row) if is_plain and any(by_row) else None


def _picked(values_by_row: bool, by_row: bool, values: Array, indices: Array) -> Array:
    places = indices[..., 0]
    check_inside(places, 0, values.shape[values_by_row])
    if not values_by_row:
        return values.take(places, axis=0)
    if not by_row:
        return values.take(places, axis=1)
    rows = np.arange(len(values)).reshape(-1, *(1,) * (places.ndim - 1))
    return values[rows, places]


def check_inside(places: Array, least: Any, length: Any) -> Array:
    """Return indices; raise IndexError if one of them is out of range."""
    if places.size and not least <= places.min() <= places.max() < length:
        raise IndexError("An index is out of range.")
    return places
