"""What a tensor is: a `jax.Array`, or on the host a NumPy array that also has `numpy()`."""

import sys
from typing import Any, NoReturn, final

import numpy as np

from evenfeed.core.errors import described


@final
class HostTensor(np.ndarray[Any, Any]):
    """A NumPy array with TensorFlow's `numpy()`: what datasets hand out."""

    __slots__ = ()

    def numpy(self) -> Any:
        """Return the plain NumPy array; of a single value the scalar, of a single text its bytes.

        Examples:
            >>> import evenfeed as tf
            >>> [x.numpy() for x in tf.data.Dataset.from_tensor_slices(["a", "b"])]
            [b'a', b'b']
        """
        plain = self.view(np.ndarray)
        return plain if plain.ndim else plain[()]

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


def host_tensor(value: Any) -> Any:
    """Return a NumPy array or scalar as a tensor, without a copy; anything else as it is."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    array: np.ndarray[Any, Any] = np.asarray(value)  # pyright: ignore[reportUnknownArgumentType]
    return array.view(HostTensor)


class _AnyTensor(type):
    def __instancecheck__(cls, instance: object) -> bool:
        # Who has no JAX loaded has no array of JAX's either.
        jax = sys.modules.get("jax")
        return isinstance(instance, HostTensor) or (
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
