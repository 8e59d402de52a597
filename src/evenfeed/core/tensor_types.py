"""Remembers which tensors were asked to have 64 bits, where JAX runs without: datasets take them so."""

import sys
import weakref
from typing import Any, Final, NoReturn, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.promised_shapes import promise_checked
from evenfeed.core.shapes import ArrayShape, ShapeLike
from evenfeed.core.text.text_values import compared, encoded

# By identity, because arrays of JAX's have no hash. An entry leaves with its tensor.
_asked: Final[dict[int, tuple["weakref.ref[Any]", DType]]] = {}


def remember_width(tensor: Any, dtype: DType) -> None:
    """Note that `tensor` would have this dtype if JAX ran with 64 bits."""
    key = id(tensor)

    def forget(_: "weakref.ref[Any]") -> None:
        _asked.pop(key, None)

    _asked[key] = weakref.ref(tensor, forget), dtype


def asked_width(tensor: Any) -> DType | None:
    """Return the dtype that was asked for; None where the tensor has it, or nobody asked."""
    found = _asked.get(id(tensor))
    return found[1] if found is not None and found[0]() is tensor else None


_shape: Any = np.ndarray.shape


class HostTensor(np.ndarray[Any, Any]):
    """A NumPy array with TensorFlow's `numpy()`: what datasets hand out."""

    __slots__ = ()

    @property
    def shape(self) -> ArrayShape:
        """The length along each axis: a tuple that is equal to a list, too."""
        return ArrayShape(_shape.__get__(self))

    @shape.setter
    def shape(self, value: Any) -> None:
        _shape.__set__(self, value)

    def numpy(self) -> Any:
        """Return the plain NumPy array, to write to; of a single value the scalar, of a single text its bytes.

        It is a copy where the tensor is read-only, because its memory is the user's array, a file or a cache.

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
        """Export the memory, or a copy of it where it is read-only.

        DLPack 1.0 can say that memory is read-only, but PyTorch writes to it all the same: to the user's
        own array, or to a mapped file, which ends the process. Only `copy=False` shares such memory, with
        that flag.
        """
        plain = self.view(np.ndarray)
        if copy is None and not plain.flags.writeable:
            plain = plain.copy()
        asked = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        # NumPy 2.0 knows none of them, and whoever asks is told so by its TypeError.
        given: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
        return plain.__dlpack__(stream=stream, **given)

    def set_shape(self, shape: ShapeLike) -> None:
        """Promise the shape for every element, so that `element_spec` says it; see `ensure_shape`."""
        promise_checked(self, shape)

    # A tensor is not changed: `x += 1` gives x another value, as in TensorFlow and JAX.
    __iadd__: Any = np.ndarray.__add__
    __isub__ = np.ndarray.__sub__
    __imul__ = np.ndarray.__mul__
    __itruediv__ = np.ndarray.__truediv__
    __ifloordiv__ = np.ndarray.__floordiv__
    __imod__ = np.ndarray.__mod__
    __ipow__ = np.ndarray.__pow__
    __imatmul__ = np.ndarray.__matmul__
    __iand__ = np.ndarray.__and__
    __ior__ = np.ndarray.__or__
    __ixor__ = np.ndarray.__xor__
    __ilshift__ = np.ndarray.__lshift__
    __irshift__ = np.ndarray.__rshift__

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


@final
class TextTensor(HostTensor):
    """A tensor of text. A class of its own, so that numbers are compared and indexed by NumPy itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> Any:
        return self._compared(other, equal=True) if self._is_text else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, equal=False) if self._is_text else super().__ne__(other)

    __hash__ = None  # as of all arrays

    @property
    def _is_text(self) -> bool:
        return self.dtype == dtypes.string  # not what NumPy computed of text, such as lengths

    def __getitem__(self, key: Any) -> Any:
        found: Any = super().__getitem__(key)
        return HostText(found) if type(found) is bytes else found

    def _compared(self, other: object, *, equal: bool) -> Any:
        return host_tensor(compared(self.view(np.ndarray), other, equal=equal))


@final
class HostText(np.bytes_):
    """A single text, as functions that are not traced get it: bytes, with what a tensor has.

    NumPy makes arrays of its own subclass of bytes, and of no other.
    """

    __slots__ = ()

    @property
    def __array_priority__(self) -> float:
        """Higher than that of arrays: they leave it to this class to compare, and to add."""
        return 1.0

    @property
    def dtype(self) -> DType:
        """That of text."""
        return dtypes.string

    @property
    def shape(self) -> Any:
        """None: it is a scalar."""
        return ArrayShape()

    def numpy(self) -> bytes:
        """Return plain bytes."""
        return bytes(self)

    __repr__ = bytes.__repr__
    __str__ = bytes.__str__

    def __reduce__(self) -> tuple[Any, ...]:
        return HostText, (bytes(self),)

    def __eq__(self, other: object) -> Any:
        return self._compared(other, equal=True)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, equal=False)

    # That of bytes, which a str has too if it is ASCII. Other keys of a dict must be bytes to be found.
    __hash__ = bytes.__hash__

    def __radd__(self, other: Any) -> Any:
        return other + bytes(self)

    def _compared(self, other: object, *, equal: bool) -> Any:
        if isinstance(other, str):
            other = encoded(other)
        if isinstance(other, bytes):
            return bytes.__eq__(self, other) is equal
        return host_tensor(compared(np.array(bytes(self), dtypes.string), other, equal=equal))


def host_tensor(value: Any) -> Any:
    """Return a NumPy array or scalar as a tensor, without a copy; anything else as it is."""
    if not isinstance(value, (np.ndarray, np.generic)) or isinstance(value, bytes):
        return value
    array: np.ndarray[Any, Any] = np.asarray(value)  # pyright: ignore[reportUnknownArgumentType]
    return array.view(TextTensor if array.dtype == dtypes.string else HostTensor)


class StandIn:
    """What a function gets for a value that is not there while it is traced."""

    __slots__ = ()

    @property
    def stands_for_tensor(self) -> bool:
        """Whether the value will be a tensor."""
        return False


class _AnyTensor(type):
    def __instancecheck__(cls, instance: object) -> bool:
        # Who has no JAX loaded has no array of JAX's either.
        jax = sys.modules.get("jax")
        if isinstance(instance, StandIn):
            return instance.stands_for_tensor
        return isinstance(instance, (HostTensor, HostText)) or (
            jax is not None and isinstance(instance, jax.Array)
        )


@final
class Tensor(metaclass=_AnyTensor):
    """The name for annotations and `isinstance`: every `jax.Array`, and what datasets hand out.

    Examples:
        >>> import evenfeed as tf
        >>> isinstance(tf.constant(1.0), tf.Tensor), isinstance(1.0, tf.Tensor)
        (True, False)
    """

    def __init__(self) -> NoReturn:
        raise TypeError(
            described(
                "Tensor is a name for annotations and isinstance; it makes nothing.",
                fix="make tensors with constant(...).",
            )
        )


def explain_tracing(error: Exception) -> None:
    """Add a note to an error about `x.numpy()` where the function is being traced: JAX's does not say why."""
    if isinstance(error, AttributeError) and str(error).endswith("Tracer has no attribute numpy"):
        error.add_note(
            "The function is being traced: its tensors have no values yet, so there is no numpy(). "
            "Compute with jax.numpy, or call Python on the values with evenfeed.py_function."
        )
