"""Finds rows of a compiled function that divide an integer by 0: XLA returns some number for them.

Loops and branches inside of a function are not looked into.
"""

# JAX is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from evenfeed.core.lazy_jax import jax

_DIVISIONS: Final = ("div", "rem")
_CALLS: Final = ("jit", "pjit")
# Functions of jax.numpy that replace a divisor of 0 by another one, so that their own operations do not show it.
_NAMED: Final = ("floor_divide", "remainder")
# The operations that keep a constant: its value, in another dtype or shape.
_KEEP: Final = ("convert_element_type", "broadcast_in_dim", "copy")


def divides_by_numbers(closed: Any) -> bool:
    """Return True if a function divides integers by something that may be 0."""
    consts = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    return _divides(closed.jaxpr, {var: value for var, value in consts if _is_small(value)})


def _divides(jaxpr: Any, known: dict[Any, Any]) -> bool:
    for equation in jaxpr.eqns:
        name, values = equation.primitive.name, [_value(var, known) for var in equation.invars]
        if _is_division(equation):
            if values[1] is None or not np.all(values[1]):
                return True
        elif name in _KEEP and values[0] is not None:
            known[equation.outvars[0]] = values[0]
        elif name in _CALLS:
            inner = equation.params["jaxpr"]
            pairs = zip(inner.jaxpr.invars, values, strict=True)
            consts = zip(inner.jaxpr.constvars, inner.consts, strict=True)
            held = {var: value for var, value in (*pairs, *consts) if value is not None}
            if _divides(inner.jaxpr, held):
                return True
    return False


def _value(var: Any, known: dict[Any, Any]) -> Any:
    """Return the value of a constant; None if it is not known."""
    literal = getattr(var, "val", None)  # a literal in the equation
    return known.get(var) if literal is None else literal


def _is_small(value: Any) -> bool:
    return np.size(value) <= 1024


def _is_division(equation: Any) -> bool:
    """Return True for a division of integers, whose second operand is the divisor."""
    name = equation.primitive.name
    divides = name in _DIVISIONS or (name in _CALLS and equation.params["name"] in _NAMED)
    return divides and np.dtype(equation.outvars[0].aval.dtype).kind in "iu"


def with_zero_divisors(function: Callable[..., list[Any]]) -> Callable[..., tuple[list[Any], Any]]:
    """Return a function that also returns whether it divided an integer by 0."""

    def checked(*arrays: Any) -> tuple[list[Any], Any]:
        closed = jax.make_jaxpr(function)(*arrays)
        zeros: list[Any] = []
        outputs = _evaluated(closed.jaxpr, closed.consts, arrays, zeros)
        return outputs, jax.numpy.any(jax.numpy.stack(zeros)) if zeros else np.bool_(False)

    return checked


def _evaluated(
    jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any], zeros: list[Any]
) -> list[Any]:
    """Evaluate a jaxpr, and add to `zeros` whether each of its divisors is 0."""
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, arguments, strict=True))

    def read(var: Any) -> Any:
        return var.val if hasattr(var, "val") else values[var]

    for equation in jaxpr.eqns:
        given = [read(var) for var in equation.invars]
        is_division = _is_division(equation)
        if is_division:
            zeros.append(jax.numpy.any(jax.numpy.equal(given[1], 0)))
        if equation.primitive.name in _CALLS and not is_division:
            inner = equation.params["jaxpr"]
            found = _evaluated(inner.jaxpr, inner.consts, given, zeros)
        else:
            settings = equation.primitive.get_bind_params(equation.params)
            with equation.ctx.manager:
                made = equation.primitive.bind(*given, **settings)
            found = made if equation.primitive.multiple_results else [made]
        values.update(zip(equation.outvars, found, strict=True))
    return [read(var) for var in jaxpr.outvars]
