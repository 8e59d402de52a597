"""Finds rows of a compiled function that divide an integer by 0, or use an index that is out of range.

XLA returns some number for them.

Loops and branches inside of a function are not looked into.
"""

# JAX is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from evenfeed.core.lazy_jax import jax
from evenfeed.runtime.functions.staging.row_failures import BY_ZERO, OUTSIDE
from evenfeed.runtime.functions.trace_facts import CALLS, is_index_check

_DIVISIONS: Final = ("div", "rem")
# Functions of jax.numpy that replace a divisor of 0 by another one, so that their own operations do not show it.
_NAMED: Final = ("floor_divide", "remainder")
# The operations that keep a constant: its value, in another dtype or shape.
_KEEP: Final = ("convert_element_type", "broadcast_in_dim", "copy")


def needs_checks(closed: Any) -> bool:
    """Return True if a function divides integers by something that may be 0, or has indices that are marked."""
    consts = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    return _needs_checks(closed.jaxpr, {var: value for var, value in consts if _is_small(value)})


def _needs_checks(jaxpr: Any, known: dict[Any, Any]) -> bool:
    for equation in jaxpr.eqns:
        name, values = equation.primitive.name, [_value(var, known) for var in equation.invars]
        if is_index_check(equation):
            return True
        if _is_division(equation):
            if values[1] is None or not np.all(values[1]):
                return True
        elif name in _KEEP and values[0] is not None:
            known[equation.outvars[0]] = values[0]
        elif name in CALLS:
            inner = equation.params["jaxpr"]
            pairs = zip(inner.jaxpr.invars, values, strict=True)
            consts = zip(inner.jaxpr.constvars, inner.consts, strict=True)
            held = {var: value for var, value in (*pairs, *consts) if value is not None}
            if _needs_checks(inner.jaxpr, held):
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
    divides = name in _DIVISIONS or (name in CALLS and equation.params["name"] in _NAMED)
    return divides and np.dtype(equation.outvars[0].aval.dtype).kind in "iu"


def with_checks(function: Callable[..., list[Any]]) -> Callable[..., tuple[list[Any], Any]]:
    """Return a function that also returns whether it failed: 0, BY_ZERO or OUTSIDE."""

    def checked(*arrays: Any) -> tuple[list[Any], Any]:
        closed = jax.make_jaxpr(function)(*arrays)
        failures: list[Any] = []
        outputs = _evaluated(closed.jaxpr, closed.consts, arrays, failures)
        none = np.int32(0)
        return outputs, jax.numpy.max(jax.numpy.stack(failures)) if failures else none

    return checked


def _evaluated(
    jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any], failures: list[Any]
) -> list[Any]:
    """Evaluate a jaxpr, and add to `failures` the result of each check."""
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, arguments, strict=True))

    def read(var: Any) -> Any:
        return var.val if hasattr(var, "val") else values[var]

    for equation in jaxpr.eqns:
        given = [read(var) for var in equation.invars]
        found = _checked(equation, given, failures)
        if found is None:
            settings = equation.primitive.get_bind_params(equation.params)
            with equation.ctx.manager:
                made = equation.primitive.bind(*given, **settings)
            found = made if equation.primitive.multiple_results else [made]
        values.update(zip(equation.outvars, found, strict=True))
    return [read(var) for var in jaxpr.outvars]


def _checked(equation: Any, given: Sequence[Any], failures: list[Any]) -> Sequence[Any] | None:
    """Check an equation; return its results if they are known then."""
    if is_index_check(equation):
        failures.append(jax.numpy.where(_is_outside(*given), np.int32(OUTSIDE), np.int32(0)))
        return given[:1]
    if _is_division(equation):
        is_zero = jax.numpy.any(jax.numpy.equal(given[1], 0))
        failures.append(jax.numpy.where(is_zero, np.int32(BY_ZERO), np.int32(0)))
        return None
    if equation.primitive.name in CALLS:
        inner = equation.params["jaxpr"]
        return _evaluated(inner.jaxpr, inner.consts, given, failures)
    return None


def _is_outside(places: Any, least: Any, length: Any) -> Any:
    wide = places.astype(np.int64)  # a uint64 that does not fit becomes negative
    return ((wide < least) | (wide >= length)).any()
