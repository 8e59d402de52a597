"""Type promotion: the dtype of arithmetic on elements, the same in a trace and in NumPy.

The rule is JAX's, with TensorFlow's defaults. A float dtype wins over integers of any width. Python numbers, and
lists of them, take the dtype of the tensor if they can. 64 bits come only from a tensor that has them. Plain NumPy
would return float64 for `uint8 / 255` and float16 for `exp(uint8)`. `PromotingTensor` applies the rule to NumPy
ufuncs and methods.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes, promised_shapes
from evenfeed.core.dtypes import DType
from evenfeed.core.promised_shapes import promise_reshaped, promise_result
from evenfeed.core.tensor_types import HostTensor, host_tensor

# An operand of a ufunc: its dtype, whether its 64 bits count, and whether it is a tensor; or the type of a
# Python number.
Operand: TypeAlias = tuple[DType, bool, bool] | type

NARROWER: Final[dict[DType, DType]] = {
    dtypes.int64: dtypes.int32,
    dtypes.uint64: dtypes.uint32,
    dtypes.float64: dtypes.float32,
    dtypes.complex128: dtypes.complex64,
}

# The name of a jitted conversion to 64 bits that a TensorFlow function makes by default, such as that of `argmax`.
KEEPS_64_BITS: Final = "keeps_64_bits"

_BOOL, _WHOLE, _FLOAT, _COMPLEX = range(4)
_PYTHON: Final[dict[type, int]] = {bool: _BOOL, int: _WHOLE, float: _FLOAT, complex: _COMPLEX}
_DEFAULTS: Final = (dtypes.bool, dtypes.int32, dtypes.float32, dtypes.complex64)
_WIDE_DEFAULTS: Final = (dtypes.bool, dtypes.int64, dtypes.float64, dtypes.complex128)


def is_narrowed(tensor: Any, dtype: DType) -> bool:
    """Return True if a JAX array may hold 64 bits of this dtype in 32, because JAX runs with 32."""
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(tensor, jax.Array) or jax.config.jax_enable_x64:
        return False
    return NARROWER.get(dtype) == tensor.dtype


def is_number(kind: type) -> bool:
    """Return True for the types of Python numbers."""
    return kind in _PYTHON


def tensor_operand(dtype: DType) -> Operand:
    """Return the operand for a tensor."""
    return dtype, dtype in NARROWER, True


def constant_operand(array: Any) -> Operand:
    """Return the operand for a NumPy array or scalar. Its 64 bits count only if a value needs them."""
    return array.dtype, array.dtype in NARROWER and not fits_32_bits(array), False


def fits_32_bits(values: Any) -> bool:
    """Return True unless the values are integers and one needs 64 bits."""
    array: Any = np.asarray(values)
    if array.dtype.kind not in "iu" or array.size == 0:
        return True
    low, high = _limits(NARROWER.get(array.dtype, array.dtype))
    if array.ndim == 0:  # a constant in a function that is called for each element
        return low <= int(array) <= high
    return bool(low <= array.min() and array.max() <= high)


@cache
def _limits(dtype: DType) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def array_of_list(values: Sequence[Any], dtype: DType) -> Any:
    """Convert a list to an array that is promoted like a single Python number.

    Args:
        values: Numbers, or lists of them.
        dtype: The dtype of the tensor in the same operation.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biufc":
        return array
    kind = _kind(array.dtype)
    if kind > _kind(dtype):
        return array.astype(_WIDE_DEFAULTS[kind])
    return np.asarray(values, dtype)  # NumPy raises if a value does not fit


def default_dtype(dtype: Any, own: DType) -> Any:
    """Return the dtype that `float`, `int`, `bool` or `complex` means for a tensor. Other dtypes are unchanged."""
    kind = _PYTHON.get(dtype) if isinstance(dtype, type) else None
    return dtype if kind is None else (_WIDE_DEFAULTS if own in NARROWER else _DEFAULTS)[kind]


@cache
def result_dtype(ufunc: np.ufunc, operands: tuple[Operand, ...]) -> DType | None:
    """Return the dtype to compute in; None if NumPy's own choice is right, or the only one."""
    given = [_resolvable(operand) for operand in operands]
    unknown = [None] * ufunc.nout
    try:
        own = set(ufunc.resolve_dtypes((*given, *unknown)))  # pyright: ignore[reportArgumentType]
        found = own.pop()
        wanted = _promoted(operands)
        if own or _kind(found) < _kind(wanted):  # for example, a comparison
            return None
        if _kind(found) > _kind(wanted):  # the ufunc has no loop for bools or integers
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
    """Return the common dtype of all operands."""
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
    """Return the result dtype of this kind for bool or integer operands."""
    strong = [operand for operand in operands if not isinstance(operand, type)]
    common = reduce(_common, [dtype for dtype, *_ in strong])
    wide = any(counts for _, counts, _ in strong)
    if kind > _WHOLE and common not in NARROWER:
        # A 32-bit integer has more digits than float32.
        wide = wide or any(is_tensor and dtype.itemsize >= 4 for dtype, _, is_tensor in strong)
    return (_WIDE_DEFAULTS if wide else _DEFAULTS)[kind]


def _kind(dtype: DType) -> int:
    return {"b": _BOOL, "i": _WHOLE, "u": _WHOLE, "c": _COMPLEX}.get(dtype.kind, _FLOAT)


def _summing(name: str) -> Callable[..., Any]:
    """Return a sum or product method. NumPy would widen the result to 64 bits by default."""
    numpy_method: Any = getattr(np.ndarray, name)

    def method(
        self: "PromotingTensor", axis: Any = None, dtype: Any = None, out: Any = None, **kwargs: Any
    ) -> Any:
        found = numpy_method(_plain(self), axis, dtype, out, **kwargs)
        asked = dtype is not None or out is not None
        return _promoting(found if asked else _narrowed(found, self.dtype))

    method.__name__ = name
    return method


def _accumulating(name: str) -> Callable[..., Any]:
    """Return a cumulative sum or product method, which keeps the dtype as in JAX."""
    numpy_method: Any = getattr(np.ndarray, name)

    def method(
        self: "PromotingTensor", axis: Any = None, dtype: Any = None, out: Any = None
    ) -> Any:
        kept = dtypes.int32 if self.dtype == dtypes.bool else self.dtype
        return _promoting(numpy_method(_plain(self), axis, dtype if dtype or out else kept, out))

    method.__name__ = name
    return method


def _indexing(name: str) -> Callable[..., Any]:
    """Return a method whose results are indices, which are int32 by default."""
    numpy_method: Any = getattr(np.ndarray, name)

    def method(self: "PromotingTensor", *args: Any, **kwargs: Any) -> Any:
        return _promoting(_narrowed(numpy_method(_plain(self), *args, **kwargs), self.dtype))

    method.__name__ = name
    return method


def _averaging(name: str) -> Callable[..., Any]:
    """Return a method that averages. The result is float32 for integers narrower than 32 bits."""
    numpy_method: Any = getattr(np.ndarray, name)

    def method(self: "PromotingTensor", *args: Any, **kwargs: Any) -> Any:
        found: Any = numpy_method(_plain(self), *args, **kwargs)
        narrow = self.dtype.kind in "biu" and self.dtype.itemsize < 4
        is_default = narrow and found.dtype == dtypes.float64
        return _promoting(found.astype(dtypes.float32) if is_default else found)

    method.__name__ = name
    return method


@final
class PromotingTensor(HostTensor):
    """A numeric tensor whose ufuncs and methods follow the promotion rule of this module."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Choose the dtype of a plain call. Other uses (`reduce`, keyword arguments) are left to NumPy."""
        if kwargs or method != "__call__":
            return _by_numpy(getattr(ufunc, method), inputs, **kwargs)
        kinds: list[Any] = [v.dtype.num if type(v) is PromotingTensor else type(v) for v in inputs]
        call = (ufunc, *kinds)
        operands: Sequence[Any] = inputs
        if call in _chosen:
            wanted = _chosen[call]
        else:
            operands, wanted = _choose(call, inputs)
        plain = [v.view(np.ndarray) if isinstance(v, HostTensor) else v for v in operands]
        if wanted is None:
            found = _promoting(ufunc(*plain))
        elif wanted.isbuiltin == 1:
            found = _promoting(ufunc(*plain, dtype=wanted, casting="unsafe"))
        else:  # bfloat16 and similar dtypes: NumPy finds no loop for them by the result dtype
            found = _promoting(ufunc(*(np.asarray(v, wanted) for v in plain)))
        if promised_shapes.here.promised and ufunc.signature is None:
            promise_result(found, inputs)
        return found

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Convert to a dtype. `float` and `int` mean the defaults, not 64 bits."""
        return super().astype(default_dtype(dtype, self.dtype), *args, **kwargs)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Return the values in another shape."""
        if promised_shapes.here.promised is None or not shape:
            return super().reshape(*shape, **kwargs)
        first: Any = shape[0]
        lengths: Any = shape if len(shape) > 1 else first
        tensor = zeros_reshaped(self, lengths) if promised_shapes.here.stand_ins else self
        found: Any = np.ndarray.reshape(tensor, lengths, **kwargs)
        promise_reshaped(found, lengths)
        return found

    sum, prod = map(_summing, ("sum", "prod"))
    cumsum, cumprod = map(_accumulating, ("cumsum", "cumprod"))
    argmax, argmin, argsort = map(_indexing, ("argmax", "argmin", "argsort"))
    mean, std, var = map(_averaging, ("mean", "std", "var"))


def computed_tensor(value: Any) -> Any:
    """Wrap a result that an evenfeed function computed on the host, for arithmetic in user code."""
    tensor = host_tensor(value)
    return tensor.view(PromotingTensor) if type(tensor) is HostTensor else tensor


def zeros_reshaped(stand_in: Any, lengths: Any) -> Any:
    """Return zeros of a shape, in place of a stand-in tensor whose real shape is unknown."""
    known = [max(int(length), 1) for length in np.atleast_1d(lengths)]
    return np.zeros(known, stand_in.dtype).view(PromotingTensor)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, HostTensor) else value


def _by_numpy(
    compute: Callable[..., Any], inputs: Sequence[Any], out: Any = None, **kwargs: Any
) -> Any:
    if out is None:
        return _promoting(compute(*map(_plain, inputs), **kwargs))
    compute(*map(_plain, inputs), out=tuple(map(_plain, out)), **kwargs)
    return out if len(out) > 1 else out[0]


def _promoting(found: Any) -> Any:
    kind: type[Any] = found.__class__
    if kind is np.ndarray:
        return found.view(PromotingTensor)
    if kind is tuple:
        return tuple(map(_promoting, found))
    if issubclass(kind, np.generic):
        return np.asarray(found).view(PromotingTensor)
    return found


def _narrowed(found: Any, own: DType) -> Any:
    """Convert a result that NumPy widened to 64 bits by default back to 32."""
    narrower = NARROWER.get(found.dtype)
    return found if narrower is None or found.dtype == own else found.astype(narrower)


# The dtype to compute in, by ufunc, dtype number and Python number type; None for NumPy's own choice.
_chosen: Final[dict[tuple[Any, ...], DType | None]] = {}


def _choose(call: tuple[Any, ...], inputs: Sequence[Any]) -> tuple[Sequence[Any], DType | None]:
    """Return the operands, with lists as arrays, and the dtype to compute in."""
    ufunc, *kinds = call
    first = next(value for value in inputs if isinstance(value, PromotingTensor))
    inputs = [
        array_of_list(value, first.dtype) if type(value) in (list, tuple) else value
        for value in inputs
    ]
    operands = list(map(_operand, inputs))
    wanted = None if None in operands else result_dtype(ufunc, tuple(operands))
    if all(isinstance(kind, int) or is_number(kind) or kind in _VALUE_FREE for kind in kinds):
        _chosen[call] = wanted
    return inputs, wanted


# The constants of NumPy whose value does not matter for the dtype of a result.
_VALUE_FREE: Final = frozenset({np.bool_, np.float16, np.float32, np.float64})


def _operand(value: Any) -> Any:
    """Return the operand for a value; None if it is not a number."""
    kind: type[Any] = value.__class__
    if kind is PromotingTensor:
        return tensor_operand(value.dtype)
    if is_number(kind):
        return kind
    return constant_operand(value) if isinstance(value, (np.ndarray, np.generic)) else None


def dtype_of_tensors(values: Iterable[object]) -> DType | None:
    """Return the dtype of the tensors of the host among values; None if there are none, or they differ."""
    found = {value.dtype for value in values if isinstance(value, HostTensor)}
    return found.pop() if len(found) == 1 else None


def unwrapped(value: Any) -> Any:
    """Return the number in an array without axes; anything else unchanged."""
    return value.view(np.ndarray)[()] if isinstance(value, np.ndarray) else value


def stackable(value: Any) -> list[np.ndarray[Any, np.dtype[Any]]] | None:
    """Return the arrays of a list if `np.stack` can join them: all numeric, of one shape and dtype."""
    if type(value) not in (list, tuple):
        return None
    arrays: list[np.ndarray[Any, np.dtype[Any]]] = [
        part for part in value if isinstance(part, np.ndarray)
    ]
    if not arrays or len(arrays) < len(value):
        return None
    kinds = {(array.shape, array.dtype) for array in arrays}
    if len(kinds) != 1 or arrays[0].dtype.kind not in "biuf" or arrays[0].size == 0:
        return None
    return arrays
