"""Functions of the bits of integers."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in

from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.operands import INTEGERS, elementwise


def bitwise_and(x: object, y: object, name: str | None = None) -> Tensor:
    """Return the bits that are set in both.

    Examples:
        >>> import evenfeed as tf
        >>> tf.bitwise.bitwise_and([6], [3]).tolist()
        [2]
    """
    return elementwise("bitwise_and", jnp.bitwise_and, x, y, accepts=INTEGERS)


def bitwise_or(x: object, y: object, name: str | None = None) -> Tensor:
    """Return the bits that are set in one or both.

    Examples:
        >>> import evenfeed as tf
        >>> tf.bitwise.bitwise_or([6], [3]).tolist()
        [7]
    """
    return elementwise("bitwise_or", jnp.bitwise_or, x, y, accepts=INTEGERS)


def bitwise_xor(x: object, y: object, name: str | None = None) -> Tensor:
    """Return the bits that are set in exactly one of both.

    Examples:
        >>> import evenfeed as tf
        >>> tf.bitwise.bitwise_xor([6], [3]).tolist()
        [5]
    """
    return elementwise("bitwise_xor", jnp.bitwise_xor, x, y, accepts=INTEGERS)


def invert(x: object, name: str | None = None) -> Tensor:
    """Return each integer with all bits flipped.

    Examples:
        >>> import evenfeed as tf
        >>> tf.bitwise.invert([6]).tolist()
        [-7]
    """
    return elementwise("invert", jnp.invert, x, accepts=INTEGERS)


def left_shift(x: object, y: object, name: str | None = None) -> Tensor:
    """Shift the bits of `x` to the left by `y`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.bitwise.left_shift([1], [3]).tolist()
        [8]
    """
    return elementwise("left_shift", jnp.left_shift, x, y, accepts=INTEGERS)


def right_shift(x: object, y: object, name: str | None = None) -> Tensor:
    """Shift the bits of `x` to the right by `y`, keeping the sign.

    Examples:
        >>> import evenfeed as tf
        >>> tf.bitwise.right_shift([-8], [1]).tolist()
        [-4]
    """
    return elementwise("right_shift", jnp.right_shift, x, y, accepts=INTEGERS)
