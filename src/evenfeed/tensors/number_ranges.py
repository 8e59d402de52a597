"""The tensor function `range`."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

import math
from typing import Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.tensors.creation import DTypeLike, Tensor, is_on_device, read
from evenfeed.tensors.device_arrays import asked_dtype, computed

# The dtypes that TensorFlow's `range` supports. The widest one among the arguments wins.
_COUNTING: Final = (
    dtypes.int32,
    dtypes.int64,
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    dtypes.float64,
)


def range(  # noqa: A001 - TensorFlow's name
    start: object,
    limit: object = None,
    delta: object = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Create the numbers from `start` up to `limit`, exclusive, in steps of `delta`.

    Args:
        start: The first number. Without `limit`, it is the limit, and the range starts at 0.
        limit: The end of the range, exclusive.
        delta: The step, which may be negative or fractional.
        dtype: The dtype of the numbers; by default the widest among the arguments.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.range(5).tolist()
        [0, 1, 2, 3, 4]
        >>> tf.range(3, 0, -1).tolist()
        [3, 2, 1]
    """
    bounds = (0, start, delta) if limit is None else (start, limit, delta)
    if dtype is None:
        numbers = _in_widest([_bound(bound) for bound in bounds])
    else:
        asked_dtype(dtype)  # warns
        numbers = [_bound(bound, _countable(dtypes.as_dtype(dtype))) for bound in bounds]
    return computed(_counted(*numbers), "the range")


_SMALL: Final = 2**31


def _bound(value: object, dtype: DType | None = None) -> Array:
    """Convert one argument of `range` to a NumPy scalar. Only tensors are cast to `dtype`."""
    if type(value) is int and dtype is None and -_SMALL <= value < _SMALL:
        return np.asarray(value, dtypes.int32)  # nearly always, in a tenth of the time
    known = np.asarray(read(value)) if is_on_device(value) else value
    number = to_array(known, dtype)
    if number.ndim > 0:
        raise InvalidArgumentError(
            f"range needs single numbers, but got {shortened(value)}.",
            fix="pass a number, or a tensor of shape [].",
        )
    return number


def _countable(dtype: DType) -> DType:
    if dtype.kind == "c":
        raise InvalidArgumentError(
            f"range does not support {dtype.name}, which has no order.",
            fix="use a float dtype, and convert the result with evenfeed.cast.",
        )
    return dtype


def _in_widest(numbers: list[Array]) -> list[Array]:
    for number in numbers:
        if number.dtype not in _COUNTING:
            raise TypeError(
                described(
                    f"range supports {', '.join(dtype.name for dtype in _COUNTING)}, "
                    f"but got {dtypes.name_of(number.dtype)}.",
                    fix="pass numbers of one of these dtypes, or choose one with dtype=.",
                )
            )
    widest = max((number.dtype for number in numbers), key=_COUNTING.index)
    return [number.astype(widest) for number in numbers]


def _counted(start: Array, limit: Array, delta: Array) -> Array:
    # `not <=` instead of `>`, so that NaN is rejected too.
    if delta == 0 or (delta > 0 and not start <= limit) or (delta < 0 and not start >= limit):
        raise InvalidArgumentError(
            f"range cannot go from {start} to {limit} in steps of {delta}.",
            fix="pass a delta that leads from start to limit.",
        )
    if start.dtype.kind in "iu":
        return np.arange(int(start), int(limit), int(delta)).astype(start.dtype)
    steps = np.arange(_steps(start, limit, delta)).astype(start.dtype)
    return start + steps * delta


def _steps(start: Array, limit: Array, delta: Array) -> int:
    with np.errstate(over="ignore", invalid="ignore"):
        steps = float(abs((limit - start) / delta))
    if not math.isfinite(steps):
        raise InvalidArgumentError(
            f"range from {start} to {limit} in steps of {delta} does not end.",
            fix="pass finite numbers.",
        )
    return math.ceil(steps)
