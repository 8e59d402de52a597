"""The NumPy calls for operations of JAX: only those with one correct result, to the last bit."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.runtime.functions.arithmetic.column_steps import truncated_quotient

Apply = Callable[..., Array]

_UFUNCS: Final[dict[str, Apply]] = {
    "abs": np.absolute,
    "add": np.add,
    "and": np.bitwise_and,
    "ceil": np.ceil,
    "div": np.divide,
    "eq": np.equal,
    "floor": np.floor,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "rem": np.fmod,
    "sqrt": np.sqrt,
    "square": np.square,
    "sub": np.subtract,
    "xor": np.bitwise_xor,
}
# For floats, NumPy and XLA may differ in the sign of zero.
_OF_INTEGERS: Final[dict[str, Apply]] = {"max": np.maximum, "min": np.minimum, "sign": np.sign}
# A reduction of floats depends on the order of the operands.
_REDUCTIONS: Final[dict[str, np.ufunc]] = {
    "reduce_and": np.bitwise_and,
    "reduce_max": np.maximum,
    "reduce_min": np.minimum,
    "reduce_or": np.bitwise_or,
    "reduce_prod": np.multiply,
    "reduce_sum": np.add,
}
# A shift by more bits than there are is undefined.
_SHIFTS: Final[dict[str, Apply]] = {
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": np.right_shift,
}
# The dtypes for which NumPy shifts like XLA.
_SHIFTED: Final = {
    "shift_left": "iu",
    "shift_right_arithmetic": "i",
    "shift_right_logical": "u",
}
_HALF_TO_EVEN: Final = 1


def apply_of(name: str, params: dict[str, Any], dtype: DType, second: Any) -> Apply | None:
    """Return the NumPy call for an operation on each number; None if there is none.

    Args:
        name: The name of the primitive.
        params: Its settings.
        dtype: The dtype of the first operand.
        second: The second operand, if it is constant.
    """
    is_float = dtype.kind == "f"
    match name:
        case "integer_pow" if params["y"] == 2:
            return np.square
        case "integer_pow" if not is_float and params["y"] > 2:
            return partial(_power, params["y"])
        case "round" if int(params["rounding_method"]) == _HALF_TO_EVEN:
            return np.rint
        case "div" | "rem" if not is_float:
            # NumPy and XLA differ on zero.
            by_zero = second is None or not np.all(second)
            return None if by_zero else truncated_quotient if name == "div" else np.fmod
        case _ if name in _SHIFTS:
            is_alike = dtype.kind in _SHIFTED[name] and _is_shift(second, dtype)
            return _SHIFTS[name] if is_alike else None
        case _ if name in _OF_INTEGERS:
            return None if is_float else _OF_INTEGERS[name]
        case _:
            return _UFUNCS.get(name)


def _is_shift(value: Any, dtype: DType) -> bool:
    return value is not None and bool(np.all((value >= 0) & (value < 8 * dtype.itemsize)))


def reduction_of(name: str, axes: Sequence[int], dtype: DType) -> Apply | None:
    """Return the NumPy call that reduces each row; None if there is none, or it depends on an order."""
    if name not in _REDUCTIONS or dtype.kind == "f":
        return None
    return partial(_reduced, _REDUCTIONS[name], tuple(axis + 1 for axis in axes))


def has_identity(name: str) -> bool:
    """Return True if NumPy reduces no numbers at all to what XLA does."""
    return _REDUCTIONS[name].identity is not None


def _reduced(ufunc: np.ufunc, axes: tuple[int, ...], column: Array) -> Array:
    return ufunc.reduce(column, axis=axes, dtype=column.dtype)


def joining_of(name: str, params: dict[str, Any], by_row: Sequence[bool]) -> Apply | None:
    """Return the NumPy call that joins several operands into one row; None if there is none.

    Args:
        name: The name of the primitive.
        params: Its settings.
        by_row: For each operand, whether it has a row for each element.
    """
    join = {"stack": np.stack, "concatenate": np.concatenate}.get(name)
    if join is None or not any(by_row):
        return None
    axis = params["axis"] if name == "stack" else params["dimension"]
    return partial(_joined, join, axis + 1, tuple(by_row))


def _joined(join: Apply, axis: int, by_row: Sequence[bool], *operands: Array) -> Array:
    length = next(len(one) for one, own in zip(operands, by_row, strict=True) if own)
    pairs = zip(operands, by_row, strict=True)
    rows = [one if own else np.broadcast_to(one, (length, *one.shape)) for one, own in pairs]
    return join(rows, axis=axis)


def _power(exponent: int, column: Array) -> Array:
    return np.power(column, np.asarray(exponent, column.dtype))
