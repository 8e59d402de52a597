"""Which dtype arithmetic on elements has: the same whether a function is traced, or NumPy computes.

The rule is JAX's, with TensorFlow's defaults: a float wins over whole numbers whatever their width, numbers
of Python's own and lists of them take the dtype of the tensor where they can, and 64 bits come only from a
tensor that has them. NumPy alone would make float64 of `uint8 / 255` and float16 of `exp(uint8)`.
"""

from collections.abc import Sequence
from functools import cache, reduce
from typing import Any, Final, TypeAlias

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType

# What an operand of a ufunc is: a dtype, whether its 64 bits count, and whether it is a tensor; or a type of
# Python's numbers.
Operand: TypeAlias = tuple[DType, bool, bool] | type

NARROWER: Final[dict[DType, DType]] = {
    dtypes.int64: dtypes.int32,
    dtypes.uint64: dtypes.uint32,
    dtypes.float64: dtypes.float32,
    dtypes.complex128: dtypes.complex64,
}

_BOOL, _WHOLE, _FLOAT, _COMPLEX = range(4)
_PYTHON: Final[dict[type, int]] = {bool: _BOOL, int: _WHOLE, float: _FLOAT, complex: _COMPLEX}
_DEFAULTS: Final = (dtypes.bool, dtypes.int32, dtypes.float32, dtypes.complex64)
_WIDE_DEFAULTS: Final = (dtypes.bool, dtypes.int64, dtypes.float64, dtypes.complex128)


def is_number(kind: type) -> bool:
    """Return True for the types of Python's own numbers."""
    return kind in _PYTHON


def tensor_operand(dtype: DType) -> Operand:
    """Return what a tensor is in an operation."""
    return dtype, dtype in NARROWER, True


def constant_operand(array: Any) -> Operand:
    """Return what an array or a scalar of NumPy's is: its 64 bits count only if a value needs them."""
    return array.dtype, array.dtype in NARROWER and not fits_32_bits(array), False


def fits_32_bits(values: Any) -> bool:
    """Return True unless a whole number among the values needs 64 bits."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.size == 0:
        return True
    limits = np.iinfo(NARROWER.get(array.dtype, array.dtype))
    return bool(limits.min <= array.min() and array.max() <= limits.max)


def array_of_list(values: Sequence[Any], dtype: DType) -> Any:
    """Return a list as an array that is promoted as one number of its kind would be.

    Args:
        values: Numbers, or lists of them.
        dtype: That of the tensor which the list meets.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        return array
    kind = _kind(array.dtype)
    if kind > _kind(dtype):
        return array.astype(_WIDE_DEFAULTS[kind])
    return np.asarray(values, dtype)  # NumPy refuses what does not fit


def default_dtype(dtype: Any, own: DType) -> Any:
    """Return what `float`, `int` and kin are as the dtype to convert a tensor to; any other dtype as it is."""
    kind = _PYTHON.get(dtype) if isinstance(dtype, type) else None
    return dtype if kind is None else (_WIDE_DEFAULTS if own in NARROWER else _DEFAULTS)[kind]


@cache
def result_dtype(ufunc: np.ufunc, operands: tuple[Operand, ...]) -> DType | None:
    """Return the dtype to compute in; None where NumPy's own choice is right, or the only one."""
    given = [_resolvable(operand) for operand in operands]
    unknown = [None] * ufunc.nout
    try:
        own = set(ufunc.resolve_dtypes((*given, *unknown)))  # pyright: ignore[reportArgumentType]
        found = own.pop()
        wanted = _promoted(operands)
        if own or _kind(found) < _kind(wanted):  # a comparison, say
            return None
        if _kind(found) > _kind(wanted):  # NumPy knows no bools or no whole numbers here
            wanted = _default(_kind(found), operands)
        if wanted == found:
            return None
        loop = (wanted,) * ufunc.nin
        ufunc.resolve_dtypes((*loop, *unknown))  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None
    return wanted


def _resolvable(operand: Operand) -> Any:
    if not isinstance(operand, type):
        return operand[0]
    return dtypes.bool if operand is bool else operand


def _promoted(operands: Sequence[Operand]) -> DType:
    """Return the dtype of all operands together."""
    strong = [operand for operand in operands if not isinstance(operand, type)]
    found = reduce(_common, [dtype for dtype, *_ in strong])
    wide = any(counts for _, counts, _ in strong)
    if not wide:
        found = NARROWER.get(found, found)
    weak = max((_PYTHON[kind] for kind in operands if isinstance(kind, type)), default=_BOOL)
    return found if weak <= _kind(found) else (_WIDE_DEFAULTS if wide else _DEFAULTS)[weak]


def _common(one: DType, two: DType) -> DType:
    kinds = _kind(one), _kind(two)
    if kinds[0] == kinds[1] or kinds[0] + kinds[1] > _WHOLE + _COMPLEX:
        return np.promote_types(one, two)
    return one if kinds[0] > kinds[1] else two


def _default(kind: int, operands: Sequence[Operand]) -> DType:
    """Return what a function of this kind computes of bools or whole numbers."""
    strong = [operand for operand in operands if not isinstance(operand, type)]
    common = reduce(_common, [dtype for dtype, *_ in strong])
    wide = any(counts for _, counts, _ in strong)
    if kind > _WHOLE and common not in NARROWER:
        # A whole number of 32 bits has more digits than float32.
        wide = wide or any(is_tensor and dtype.itemsize >= 4 for dtype, _, is_tensor in strong)
    return (_WIDE_DEFAULTS if wide else _DEFAULTS)[kind]


def _kind(dtype: DType) -> int:
    return {"b": _BOOL, "i": _WHOLE, "u": _WHOLE, "c": _COMPLEX}.get(dtype.kind, _FLOAT)
