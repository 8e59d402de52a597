"""Functions with gradients of their own: `custom_gradient`, `recompute_grad` and `grad_pass_through`."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.structure import NEST, flatten, pack
from evenfeed.replicas.tape.reads import reading_as, variables_read_by
from evenfeed.tensors.creation import convert_to_tensor


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that returns its result together with the function for its gradient.

    The function is called again for its gradient, so it should have no side effects.

    Args:
        f: Takes tensors. Returns its result, and a function from the gradients of the result to those of the
            arguments. If `f` reads trainable variables, that function takes `variables=` too, and returns the
            gradients of the arguments and a list with those of the variables.

    Examples:
        >>> import evenfeed as tf
        >>> @tf.custom_gradient
        ... def clipped(x):
        ...     return x, lambda upstream: tf.clip_by_value(upstream, -1.0, 1.0)
        >>> x = tf.constant(2.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = 5.0 * clipped(x)
        >>> float(tape.gradient(y, x))
        1.0
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        leaves = [convert_to_tensor(leaf) for leaf in flatten(args, NEST)]

        def call(given: Sequence[Any]) -> Any:
            return f(*pack(args, list(given), NEST), **kwargs)

        def result_of(given: Sequence[Any]) -> Any:
            return call(given)[0]

        variables = variables_read_by(lambda: jax.eval_shape(result_of, leaves))

        def own(given: list[Any], values: list[Any]) -> tuple[Any, Callable[[Any], Any]]:
            with reading_as(dict(zip(map(id, variables), values, strict=True))):
                result, gradient = call(given)
            return result, functools.partial(_pulled, f, gradient, args, given, variables)

        values = [variable.value() for variable in variables]
        return _with_own_gradient(jax.custom_gradient(own))(leaves, values)

    return decorated


def _with_own_gradient(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with its own gradient in derivatives of all orders.

    JAX differentiates the forward pass of a gradient as plain code: a second derivative would see through the result.
    """

    @jax.custom_vjp
    def result(*given: Any) -> Any:
        return call(*given)

    def forward(*given: Any) -> tuple[Any, Any]:
        return result(*given), jax.vjp(call, *given)[1]

    def backward(pull: Any, upstream: Any) -> Any:
        return pull(upstream)

    result.defvjp(forward, backward)
    return result


def _pulled(  # noqa: PLR0913, PLR0917 - a gradient function and what it is of
    f: Callable[..., Any],
    gradient: Callable[..., Any],
    args: Any,
    given: Sequence[Any],
    variables: Sequence[Any],
    upstream: Any,
) -> tuple[list[Any], list[Any]]:
    """Call the user's gradient function, and return the gradients of all arguments and variables."""
    flat = flatten(upstream, NEST)
    if not variables:
        return _each(gradient(*flat), args, given), []
    if "variables" not in inspect.signature(gradient).parameters:
        raise TypeError(
            described(
                f"{getattr(f, '__name__', 'The function')} reads the variable {variables[0].name!r}, but its gradient "
                "function does not take `variables`.",
                fix="write def grad(*upstream, variables=None), and return the gradients of the arguments and a list "
                "of those of the variables.",
            )
        )
    found, of_variables = gradient(*flat, variables=list(variables))
    return _each(found, args, given), list(of_variables)


def _each(found: Any, args: Any, given: Sequence[Any]) -> list[Any]:
    flat = flatten(found, NEST)
    if len(flat) != len(given):
        raise ValueError(
            described(
                f"The gradient function must return {len(given)} gradients, one for each argument, but it returned "
                f"{len(flat)}.",
                fix="return a tensor or None for each argument.",
            )
        )
    del args
    return [
        jnp.zeros_like(own) if gradient is None else jnp.asarray(gradient, own.dtype)
        for gradient, own in zip(flat, given, strict=True)
    ]


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose values are computed again for the gradient, instead of being kept in memory.

    Args:
        f: The function. It must not assign variables.

    Examples:
        >>> import evenfeed as tf
        >>> x = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = tf.recompute_grad(tf.square)(x)
        >>> float(tape.gradient(y, x))
        6.0
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        leaves = [convert_to_tensor(leaf) for leaf in flatten(args, NEST)]

        def call(*own: Any) -> Any:
            return f(*pack(args, own, NEST), **kwargs)

        return jax.checkpoint(call)(*leaves)

    return decorated


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the values of `f` and the gradient of the identity.

    Args:
        f: A function of one tensor, whose result has the same shape.

    Examples:
        >>> import evenfeed as tf
        >>> x = tf.constant(2.6)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = 2.0 * tf.grad_pass_through(tf.round)(x)
        >>> float(y), float(tape.gradient(y, x))
        (6.0, 2.0)
    """

    @functools.wraps(f)
    def decorated(x: Any) -> Any:
        given: Any = convert_to_tensor(x)
        return given + jax.lax.stop_gradient(f(given) - given)

    return decorated
