"""The `axis` arguments of tensor functions: known integers, within the rank, each once."""

import math
from typing import Any

import numpy as np

from evenfeed.core.conversion import shortened, to_array
from evenfeed.core.dtypes import as_integers
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.tensors.creation import is_on_device, read


def axes_of(tensor: Any, axis: object) -> tuple[int, ...]:
    """Return the axes that `axis` names: None for all, an integer, or a list of integers."""
    if axis is None:
        return tuple(range(tensor.ndim))
    given = to_array(np.asarray(read(axis)) if is_on_device(axis) else as_integers(axis))
    if given.size and given.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"axis must be an integer or a list of integers, but got {shortened(axis)}.",
            fix="pass an int, a list of ints, or None for all axes.",
        )
    axes = [_within(int(one), tensor.ndim) for one in given.flat]
    if len(set(axes)) < len(axes):
        raise InvalidArgumentError(
            f"axis contains an axis twice: {shortened(axis)}.", fix="pass each axis once."
        )
    return tuple(axes)


def axis_of(rank: int, axis: object) -> int:
    """Return the one axis, counted from the front."""
    return _within(known_integer(axis, "axis"), rank)


def known_integer(value: object, what: str) -> int:
    """Return an integer that is known even in a trace. A tracer raises JAX's own error."""
    given = to_array(np.asarray(read(value)) if is_on_device(value) else as_integers(value))
    if given.size != 1 or given.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"{what} must be an integer, but got {shortened(value)}.", fix="pass an int."
        )
    return int(given.item())


def count_along(tensor: Any, axes: tuple[int, ...]) -> int:
    """Return the number of values that are reduced to one result."""
    return math.prod(tensor.shape[axis] for axis in axes)


def _within(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"axis {axis} does not exist in a tensor of rank {rank}.",
            fix=f"pass an axis from {-rank} to {rank - 1}." if rank else "omit axis.",
        )
    return axis % rank
