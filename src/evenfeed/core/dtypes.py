"""TensorFlow's dtype names, as NumPy and ml_dtypes dtypes.

A TensorFlow string is bytes of any length. NumPy stores such values as objects, so `string` is the
object dtype.
"""

import builtins
from typing import Any, Final, TypeAlias, cast

# NumPy first: if the C code of ml_dtypes imports it, the import takes a third longer.
# isort: off
import numpy as np
import ml_dtypes
# isort: on

from evenfeed.core.errors import described
from evenfeed.core.lazy import difflib

DType: TypeAlias = np.dtype[Any]

float16: Final[DType] = np.dtype(np.float16)
float32: Final[DType] = np.dtype(np.float32)
float64: Final[DType] = np.dtype(np.float64)
half: Final = float16
double: Final = float64
bfloat16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
float8_e4m3fn: Final[DType] = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz: Final[DType] = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e4m3b11fnuz: Final[DType] = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e5m2: Final[DType] = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz: Final[DType] = np.dtype(ml_dtypes.float8_e5m2fnuz)
int4: Final[DType] = np.dtype(ml_dtypes.int4)
int8: Final[DType] = np.dtype(np.int8)
int16: Final[DType] = np.dtype(np.int16)
int32: Final[DType] = np.dtype(np.int32)
int64: Final[DType] = np.dtype(np.int64)
uint4: Final[DType] = np.dtype(ml_dtypes.uint4)
uint8: Final[DType] = np.dtype(np.uint8)
uint16: Final[DType] = np.dtype(np.uint16)
uint32: Final[DType] = np.dtype(np.uint32)
uint64: Final[DType] = np.dtype(np.uint64)
complex64: Final[DType] = np.dtype(np.complex64)
complex128: Final[DType] = np.dtype(np.complex128)
bool: Final[DType] = np.dtype(np.bool_)  # noqa: A001 - TensorFlow's name
string: Final[DType] = np.dtype(np.object_)

_NAMED: Final[list[DType]] = [
    value for value in list(globals().values()) if isinstance(value, np.dtype)
]
_BY_NAME: Final[dict[str, DType]] = {dtype.name: dtype for dtype in _NAMED if dtype != string} | {
    "half": float16,
    "float": float32,
    "double": float64,
    "string": string,
}

_KNOWN: Final[dict[DType, DType]] = {dtype: dtype for dtype in _BY_NAME.values()}

# How TensorFlow maps Python types. It rejects `int`, which could mean 32 or 64 bits.
_BY_PYTHON_TYPE: Final[dict[object, DType]] = {
    builtins.float: float32,
    builtins.bool: bool,
    builtins.object: string,
}


def as_dtype(value: object) -> DType:
    """Return the dtype for a name, a NumPy type or a Python type.

    Examples:
        >>> import evenfeed as tf
        >>> tf.as_dtype("half")
        dtype('float16')
        >>> tf.as_dtype(tf.int32) is tf.int32
        True
    """
    given: Any = value
    known = _KNOWN.get(cast("DType", given)) if isinstance(given, np.dtype) else None
    if known is not None:
        return known  # nearly always, in a third of the time
    found = _BY_NAME.get(value) if isinstance(value, str) else _of_type(value)
    if found is None:
        raise TypeError(_unknown(value))
    return found


def name_of(dtype: DType) -> str:
    """Return TensorFlow's name of `dtype`, as printed in specs."""
    return "string" if dtype == string else dtype.name


def in_wanted_dtype(value: Any, dtype: DType) -> Any:
    """Convert a NumPy array or number to the dtype that a function wants, as TensorFlow does.

    Tensors keep their dtype. So does a value that the dtype cannot hold, so that the caller raises its own error:
    TensorFlow rounds 2.5 to the integer 2, and wraps 300 to the uint8 44. Bools are True for all numbers but 0, and
    floats are rounded.
    """
    given: Any = value  # isinstance would narrow the type of `value`
    is_numpy = type(value) is np.ndarray or isinstance(value, np.generic)
    if not is_numpy or given.dtype == dtype or given.dtype.kind not in "biuf":
        return given
    with np.errstate(invalid="ignore", over="ignore"):
        converted = np.asarray(given).astype(dtype)
    is_exact = dtype.kind in "bf" or np.array_equal(converted, given)
    return converted if is_exact else given


def as_integers(value: Any) -> Any:
    """Convert NumPy's floats to int64 if they are whole numbers. Return anything else as it is."""
    return in_wanted_dtype(value, int64)


def as_floats(value: Any) -> Any:
    """Convert NumPy's numbers to float32, but keep float16. Return anything else as it is."""
    is_half = getattr(value, "dtype", None) == float16
    return value if is_half else in_wanted_dtype(value, float32)


def _of_type(value: Any) -> DType | None:
    """Return the dtype for a Python type, a NumPy dtype or type, or an object that has one (jax.numpy.int8)."""
    if value is None or (isinstance(value, type) and value.__module__ == "builtins"):
        return _BY_PYTHON_TYPE.get(value)
    try:
        dtype: DType = np.dtype(value)
    except TypeError:
        return None
    if dtype in _KNOWN:  # dtype names are slow
        return _KNOWN[dtype]
    if dtype.kind in "SUT":
        return string
    native: DType = dtype.newbyteorder("=")
    known = _BY_NAME.get(name_of(native))
    return known if known == native else None


def _unknown(value: object) -> str:
    near = difflib.get_close_matches(str(value), _BY_NAME, n=1)
    fix = f"did you mean evenfeed.{near[0]}?" if near else "pass one of: " + ", ".join(_BY_NAME)
    if value is int:
        fix = "choose the width: evenfeed.int32 or evenfeed.int64."
    return described(f"{value!r} is not a dtype.", fix=fix)
