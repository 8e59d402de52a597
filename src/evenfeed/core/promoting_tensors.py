"""Tensors for functions that are not traced: their arithmetic has the dtypes that a traced function has."""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes, promised_shapes
from evenfeed.core.dtypes import DType
from evenfeed.core.promised_shapes import promise_reshaped, promise_result
from evenfeed.core.promotion import (
    NARROWER,
    array_of_list,
    constant_operand,
    default_dtype,
    is_number,
    result_dtype,
    tensor_operand,
)
from evenfeed.core.tensor_types import HostTensor, host_tensor


def _summing(name: str) -> Callable[..., Any]:
    """Return a sum or product that NumPy would make 64 bits wide by default, whatever the tensor is."""
    numpys: Any = getattr(np.ndarray, name)

    def method(
        self: "PromotingTensor", axis: Any = None, dtype: Any = None, out: Any = None, **kwargs: Any
    ) -> Any:
        found = numpys(_plain(self), axis, dtype, out, **kwargs)
        asked = dtype is not None or out is not None
        return _promoting(found if asked else _narrowed(found, self.dtype))

    method.__name__ = name
    return method


def _running(name: str) -> Callable[..., Any]:
    """Return a running sum or product, which keeps the dtype as in JAX."""
    numpys: Any = getattr(np.ndarray, name)

    def method(
        self: "PromotingTensor", axis: Any = None, dtype: Any = None, out: Any = None
    ) -> Any:
        kept = dtypes.int32 if self.dtype == dtypes.bool else self.dtype
        return _promoting(numpys(_plain(self), axis, dtype if dtype or out else kept, out))

    method.__name__ = name
    return method


def _placing(name: str) -> Callable[..., Any]:
    """Return a search for places, which are int32 by default."""
    numpys: Any = getattr(np.ndarray, name)

    def method(self: "PromotingTensor", *args: Any, **kwargs: Any) -> Any:
        return _promoting(_narrowed(numpys(_plain(self), *args, **kwargs), self.dtype))

    method.__name__ = name
    return method


def _averaging(name: str) -> Callable[..., Any]:
    """Return an average, which is float32 for whole numbers of fewer bits."""
    numpys: Any = getattr(np.ndarray, name)

    def method(self: "PromotingTensor", *args: Any, **kwargs: Any) -> Any:
        found: Any = numpys(_plain(self), *args, **kwargs)
        narrow = self.dtype.kind in "biu" and self.dtype.itemsize < 4
        is_default = narrow and found.dtype == dtypes.float64
        return _promoting(found.astype(dtypes.float32) if is_default else found)

    method.__name__ = name
    return method


def _hash_of_number(tensor: "PromotingTensor") -> int:
    """Return what finds a single number in a dict."""
    if tensor.ndim:
        raise TypeError("unhashable type: a tensor of several values")
    return hash(tensor.item())


@final
class PromotingTensor(HostTensor):
    """Numbers that NumPy computes with by the rule of `promotion`, as far as ufuncs and methods go."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Choose the dtype of a plain call; whatever else NumPy can do, it does by itself."""
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
        else:  # bfloat16 and kin, which NumPy finds no loops for by the result
            found = _promoting(ufunc(*(np.asarray(v, wanted) for v in plain)))
        if promised_shapes.here.promised and ufunc.signature is None:
            promise_result(found, inputs)
        return found

    def __getitem__(self, key: Any) -> Any:
        return _promoting(super().__getitem__(key))

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.numpy(), ndigits)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Convert, where `float` and `int` are not wider than the default."""
        return super().astype(default_dtype(dtype, self.dtype), *args, **kwargs)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Lay the values out in another shape."""
        if promised_shapes.here.promised is None or not shape:
            return super().reshape(*shape, **kwargs)
        first: Any = shape[0]
        lengths: Any = shape if len(shape) > 1 else first
        tensor = zeros_reshaped(self, lengths) if promised_shapes.here.stand_ins else self
        found: Any = np.ndarray.reshape(tensor, lengths, **kwargs)
        promise_reshaped(found, lengths)
        return found

    __hash__: Any = _hash_of_number

    sum, prod = map(_summing, ("sum", "prod"))
    cumsum, cumprod = map(_running, ("cumsum", "cumprod"))
    argmax, argmin, argsort = map(_placing, ("argmax", "argmin", "argsort"))
    mean, std, var = map(_averaging, ("mean", "std", "var"))


def computed_tensor(value: Any) -> Any:
    """Return what a function of evenfeed's computed on the host, for users to compute with."""
    tensor = host_tensor(value)
    return tensor.view(PromotingTensor) if type(tensor) is HostTensor else tensor


def zeros_reshaped(stand_in: Any, lengths: Any) -> Any:
    """Return zeros that can take a shape, for a tensor that stands for one of which nobody knows the shape."""
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
    """Return 64 bits that NumPy took by default as 32."""
    narrower = NARROWER.get(found.dtype)
    return found if narrower is None or found.dtype == own else found.astype(narrower)


# What to compute calls in, by ufunc, dtypes' numbers and types of Python's numbers: None for NumPy's choice.
_chosen: Final[dict[tuple[Any, ...], DType | None]] = {}


def _choose(call: tuple[Any, ...], inputs: Sequence[Any]) -> tuple[Sequence[Any], DType | None]:
    """Return the operands, lists as arrays, and the dtype to compute in."""
    ufunc, *kinds = call
    first = next(value for value in inputs if isinstance(value, PromotingTensor))
    inputs = [
        array_of_list(value, first.dtype) if type(value) in (list, tuple) else value
        for value in inputs
    ]
    operands = list(map(_operand, inputs))
    wanted = None if None in operands else result_dtype(ufunc, tuple(operands))
    if all(isinstance(kind, int) or is_number(kind) for kind in kinds):
        _chosen[call] = wanted
    return inputs, wanted


def _operand(value: Any) -> Any:
    """Return what a value is in an operation; None for what is no number."""
    kind: type[Any] = value.__class__
    if kind is PromotingTensor:
        return tensor_operand(value.dtype)
    if is_number(kind):
        return kind
    return constant_operand(value) if isinstance(value, (np.ndarray, np.generic)) else None
