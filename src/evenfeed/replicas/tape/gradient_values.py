"""What a tape starts gradients with, how it adds them up, and what it returns where there are none."""

import enum
from collections.abc import Sequence
from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jnp
from evenfeed.core.structure import NEST, flatten
from evenfeed.tensors.creation import convert_to_tensor


class UnconnectedGradients(enum.Enum):
    """What `gradient` returns for a source that the target does not depend on: None, or zeros.

    Examples:
        >>> import evenfeed as tf
        >>> tf.UnconnectedGradients("zero")
        <UnconnectedGradients.ZERO: 'zero'>
    """

    NONE = "none"
    ZERO = "zero"


def starting_gradients(targets: Sequence[Any], connected: Sequence[int], given: Any) -> list[Any]:
    """Return the gradients to start with for the targets that are connected; by default ones."""
    flat: Sequence[Any] = [None] * len(targets) if given is None else flatten(given, NEST)
    if len(flat) != len(targets):
        raise InvalidArgumentError(
            f"Expected one gradient to start with for each of the {len(targets)} targets, but got {len(flat)}: "
            f"{shortened(given)}.",
            fix="pass one tensor for each target: evenfeed.constant([1.0, 2.0]), not [1.0, 2.0].",
        )
    return [_starting_gradient(targets[i], flat[i]) for i in connected]


def _starting_gradient(target: Any, given: Any) -> Any:
    if given is None:
        return jnp.ones_like(target)
    try:
        start: Any = convert_to_tensor(given, target.dtype)
        return jnp.broadcast_to(start, target.shape)
    except ValueError as error:
        raise InvalidArgumentError(
            f"A gradient to start with must be of dtype {target.dtype} and fit the shape {tuple(target.shape)} of its "
            f"target, but got {shortened(given)}.",
            fix="pass one tensor like the target for each target.",
        ) from error


def total(gradients: Sequence[tuple[Any, bool]]) -> Any:
    """Add up the gradients of all values that a variable was read with, over copies too."""
    parts = [jnp.sum(gradient, axis=0) if copies else gradient for gradient, copies in gradients]
    return sum(parts[1:], start=parts[0])


def conjugated(gradient: Any) -> Any:
    """Convert between JAX's and TensorFlow's gradients of complex numbers."""
    is_complex = jnp.issubdtype(gradient.dtype, jnp.complexfloating)
    return jnp.conj(gradient) if is_complex else gradient


def filled(
    sources: Sequence[Any],
    gradients: Sequence[Any],
    otherwise: UnconnectedGradients,
    leading: tuple[int, ...] = (),
) -> list[Any]:
    """Return the gradients, with zeros for those that are missing if asked for."""
    if otherwise is UnconnectedGradients.NONE:
        return list(gradients)
    return [
        jnp.zeros((*leading, *tuple(source.shape)), source.dtype) if found is None else found
        for source, found in zip(sources, gradients, strict=True)
    ]
