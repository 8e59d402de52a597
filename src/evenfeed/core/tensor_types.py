"""The tensor classes: HostTensor, TextTensor and HostText, and `Tensor` for annotations and isinstance.

Also remembers which JAX arrays were requested with 64 bits while JAX runs with 32. Datasets give them the
requested dtype.
"""

import sys
import threading
import weakref
from functools import wraps
from typing import Any, Final, NoReturn, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, check_divisor, described
from evenfeed.core.floor_division import dividing_arrays
from evenfeed.core.names.missing_members import graph_members, torch_members
from evenfeed.core.names.references import reference_to
from evenfeed.core.promised_shapes import promise_checked
from evenfeed.core.shapes import ArrayShape, ShapeLike, TensorShape
from evenfeed.core.text.formatted_text import shown_as_bytes
from evenfeed.core.text.text_values import appended, compared, encoded

# By identity, because JAX arrays are not hashable. An entry is removed with its tensor.
_asked: Final[dict[int, tuple["weakref.ref[Any]", DType]]] = {}


def remember_width(tensor: Any, dtype: DType) -> None:
    """Record that `tensor` would have this dtype if JAX ran with 64 bits."""
    key = id(tensor)

    def forget(_: "weakref.ref[Any]") -> None:
        _asked.pop(key, None)

    _asked[key] = weakref.ref(tensor, forget), dtype


def asked_width(tensor: Any) -> DType | None:
    """Return the requested dtype; None if the tensor has it already, or none was requested."""
    found = _asked.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None


_shape: Any = np.ndarray.shape
_item: Any = np.ndarray.__getitem__
_array: Any = np.asarray
_bytes_at: Any = bytes.__getitem__


class _Trial(threading.local):
    """Whether this thread calls a user function with zeros as a trial. They may be divisors."""

    is_on = False


trial: Final = _Trial()


def _dividing(name: str) -> Any:
    """Return both forms of an operator of NumPy that raises if an integer is divided by 0."""
    by_numpy: Any = getattr(np.ndarray, f"__{name}__")
    reflected: Any = getattr(np.ndarray, f"__r{name}__")
    if name == "floordiv":
        by_numpy = dividing_arrays(by_numpy, np.ndarray.__truediv__)
        reflected = dividing_arrays(reflected, np.ndarray.__rtruediv__)

    def operator(tensor: "HostTensor", other: Any) -> Any:
        if not trial.is_on:
            check_divisor(tensor, other)
        return by_numpy(tensor, other)

    def reflected_operator(tensor: "HostTensor", other: Any) -> Any:
        if not trial.is_on:
            check_divisor(other, tensor)
        return reflected(tensor, other)

    return operator, reflected_operator


class HostTensor(np.ndarray[Any, Any]):
    """A NumPy array with TensorFlow's `numpy()`: what datasets return."""

    __slots__ = ()

    @property
    def shape(self) -> ArrayShape:
        """The length of each axis: a tuple that also compares equal to a list."""
        return ArrayShape(_shape.__get__(self))

    @shape.setter
    def shape(self, value: Any) -> None:
        _shape.__set__(self, value)

    def numpy(self) -> Any:
        """Return a writable NumPy array; for a scalar tensor the NumPy scalar, or bytes if it holds text.

        It is a copy if the tensor is read-only, because its memory belongs to a user array, a file or a cache.

        Examples:
            >>> import evenfeed as tf
            >>> [x.numpy() for x in tf.data.Dataset.from_tensor_slices(["a", "b"])]
            [b'a', b'b']
        """
        plain = self.view(np.ndarray)
        if not plain.ndim:
            return plain[()]
        return plain if plain.flags.writeable else plain.copy()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the memory, or a copy of it if it is read-only.

        DLPack 1.0 can mark memory as read-only, but PyTorch writes to it anyway: to a user array, or to a
        memory-mapped file, which kills the process. Only `copy=False` shares such memory, marked read-only.
        """
        plain = self.view(np.ndarray)
        if copy is None and not plain.flags.writeable:
            plain = plain.copy()
        asked = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        # NumPy 2.0 accepts none of these arguments; its TypeError says so to the caller.
        given: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
        return plain.__dlpack__(stream=stream, **given)

    def get_shape(self) -> TensorShape:
        """Return the shape, with TensorFlow's methods.

        Examples:
            >>> import evenfeed as tf
            >>> next(iter(tf.data.Dataset.from_tensors([1, 2, 3]))).get_shape().as_list()
            [3]
        """
        return TensorShape(self.shape)

    ref = reference_to

    def set_shape(self, shape: ShapeLike) -> None:
        """Promise this shape for every element, so that `element_spec` has it; see `ensure_shape`."""
        promise_checked(self, shape)

    def __getitem__(self, key: Any) -> Any:
        found: Any = _item(self, key)
        # NumPy's scalars have no numpy().
        return _array(found).view(self.__class__) if isinstance(found, np.generic) else found

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride] - NumPy has None
        """The hash of the value in a scalar tensor, so that a dict finds it."""
        if self.ndim:
            raise TypeError("unhashable type: a tensor of several values")
        return hash(self.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.numpy(), ndigits)

    __floordiv__, __rfloordiv__ = _dividing("floordiv")
    __mod__, __rmod__ = _dividing("mod")

    # Tensors are immutable: `x += 1` rebinds x, as in TensorFlow and JAX.
    __iadd__: Any = np.ndarray.__add__
    __isub__ = np.ndarray.__sub__
    __imul__ = np.ndarray.__mul__
    __itruediv__ = np.ndarray.__truediv__
    __ifloordiv__ = __floordiv__
    __imod__ = __mod__
    __ipow__ = np.ndarray.__pow__
    __imatmul__ = np.ndarray.__matmul__
    __iand__ = np.ndarray.__and__
    __ior__ = np.ndarray.__or__
    __ixor__ = np.ndarray.__xor__
    __ilshift__ = np.ndarray.__lshift__
    __irshift__ = np.ndarray.__rshift__

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __str__(self) -> str:
        # NumPy writes single values, not tensors, with the digits of their dtype.
        return str(self.view(np.ndarray))


def _returning_tensors(name: str) -> Any:
    """Return a method of NumPy whose single numbers become tensors, like its arrays."""
    by_numpy: Any = getattr(np.ndarray, name)

    @wraps(by_numpy)
    def method(tensor: HostTensor, *args: Any, **kwargs: Any) -> Any:
        found: Any = by_numpy(tensor, *args, **kwargs)
        return host_tensor(found) if isinstance(found, np.generic) else found

    return method


# The other reductions of NumPy return tensors by themselves.
for _name in ("argmax", "argmin", "dot", "round", "searchsorted", "take", "trace"):
    setattr(HostTensor, _name, _returning_tensors(_name))


def _operator(name: str) -> Any:
    """Return an operator that NumPy has, for tensors that do not hold text."""
    by_numpy: Any = getattr(np.ndarray, name)

    def method(tensor: "TextTensor", *others: Any) -> Any:
        if tensor.dtype == dtypes.string:
            raise InvalidArgumentError(
                f"Text has no {name}: tensors of text can be compared with == and !=, and joined with +.",
                fix="convert it to numbers with evenfeed.strings.to_number, or call evenfeed.strings.",
            )
        return by_numpy(tensor, *others)

    return method


@final
class TextTensor(HostTensor):
    """A tensor of text. A separate class, so that NumPy itself compares and indexes numeric tensors."""

    __slots__ = ()

    def __eq__(self, other: object) -> Any:
        return self._compared(other, equal=True) if self._is_text else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, equal=False) if self._is_text else super().__ne__(other)

    __hash__ = HostTensor.__hash__

    def __add__(self, other: object) -> Any:
        if not self._is_text:
            return super().__add__(other)
        return host_tensor(appended(self.view(np.ndarray), other))

    def __radd__(self, other: object) -> Any:
        if not self._is_text:
            return super().__radd__(other)
        return host_tensor(appended(other, self.view(np.ndarray)))

    # NumPy would apply the operators of bytes: 2 * x would repeat texts.
    __mul__, __rmul__ = _operator("__mul__"), _operator("__rmul__")
    __sub__, __rsub__ = _operator("__sub__"), _operator("__rsub__")
    __mod__, __rmod__ = _operator("__mod__"), _operator("__rmod__")
    __neg__, __abs__, __invert__ = (_operator(n) for n in ("__neg__", "__abs__", "__invert__"))

    @property
    def _is_text(self) -> bool:
        return self.dtype == dtypes.string  # False for what NumPy computes from text

    def __getitem__(self, key: Any) -> Any:
        if not self._is_text:
            return super().__getitem__(key)
        found: Any = _item(self, key)
        return HostText(found) if isinstance(found, bytes) else found

    def _compared(self, other: object, *, equal: bool) -> Any:
        return host_tensor(compared(self.view(np.ndarray), other, equal=equal))


@final
class HostText(np.bytes_):
    """A scalar text, as untraced functions receive it: bytes, with the attributes of a tensor.

    Derived from np.bytes_, the only subclass of bytes that NumPy converts to an array.
    """

    __slots__ = ()

    @property
    def __array_priority__(self) -> float:
        """Higher than that of arrays, so that they let this class do comparison and addition."""
        return 1.0

    @property
    def dtype(self) -> DType:
        """The dtype of text."""
        return dtypes.string

    @property
    def shape(self) -> Any:
        """The empty shape of a scalar."""
        return ArrayShape()

    def numpy(self) -> bytes:
        """Return plain bytes."""
        return bytes(self)

    def get_shape(self) -> TensorShape:
        """Return the shape, with TensorFlow's methods."""
        return TensorShape(())

    ref = reference_to

    def __getitem__(self, key: Any) -> Any:
        """Return the bytes at an int or a slice; for `tf.newaxis`, `...` and other keys, index a tensor."""
        if isinstance(key, (int, np.integer, slice)) and not isinstance(key, bool):
            return _bytes_at(self, key)
        return host_tensor(np.array(bytes(self), dtypes.string))[key]

    __repr__ = bytes.__repr__

    def __str__(self) -> str:
        return shown_as_bytes(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return HostText, (bytes(self),)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, equal=True)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, equal=False)

    # The hash of bytes, which an ASCII str shares. Other dict keys are found only if they are bytes.
    __hash__ = bytes.__hash__

    def __add__(self, other: object) -> Any:
        return _text(appended(bytes(self), other))

    def __radd__(self, other: object) -> Any:
        return _text(appended(other, bytes(self)))

    def _compared(self, other: object, *, equal: bool) -> Any:
        if isinstance(other, str):
            other = encoded(other)
        if isinstance(other, bytes):
            return host_tensor(np.bool_(bytes.__eq__(self, other) is equal))
        return host_tensor(compared(np.array(bytes(self), dtypes.string), other, equal=equal))


def _text(found: Any) -> Any:
    """Return a text array without axes as a single text."""
    if found is NotImplemented or found.ndim:
        return host_tensor(found)
    return HostText(found.item())


for _name, _member in (graph_members() | torch_members()).items():
    setattr(HostTensor, _name, _member)
    setattr(HostText, _name, _member)


def host_tensor(value: Any) -> Any:
    """View a NumPy array or scalar as a tensor, without a copy. Returns anything else unchanged."""
    array: np.ndarray[Any, Any] = value
    if type(value) is not np.ndarray:
        if not isinstance(value, (np.ndarray, np.generic)) or isinstance(value, bytes):
            return value
        array = np.asarray(value)  # pyright: ignore[reportUnknownArgumentType]
    return array.view(TextTensor if array.dtype.kind == "O" else HostTensor)


class StandIn:
    """A placeholder that a traced function receives for a value that does not exist yet."""

    __slots__ = ()

    @property
    def stands_for_tensor(self) -> bool:
        """True if the value will be a tensor."""
        return False


class _AnyTensor(type):
    def __instancecheck__(cls, instance: object) -> bool:
        # If JAX is not loaded, there are no JAX arrays either.
        jax = sys.modules.get("jax")
        if isinstance(instance, StandIn):
            return instance.stands_for_tensor
        return isinstance(instance, (HostTensor, HostText)) or (
            jax is not None and isinstance(instance, jax.Array)
        )


@final
class Tensor(metaclass=_AnyTensor):
    """The type for annotations and `isinstance`: every `jax.Array`, and what datasets return.

    Examples:
        >>> import evenfeed as tf
        >>> isinstance(tf.constant(1.0), tf.Tensor), isinstance(1.0, tf.Tensor)
        (True, False)
    """

    def __init__(self) -> NoReturn:
        raise TypeError(
            described(
                "Tensor is only for annotations and isinstance; it cannot be instantiated.",
                fix="create tensors with evenfeed.constant(...).",
            )
        )
