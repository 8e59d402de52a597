"""Finds out where the 64-bit results of a trace take their width from."""

from collections.abc import Sequence
from typing import Any, Final

from evenfeed.core.promotion import KEEPS_64_BITS, NARROWER, fits_32_bits

# Primitives whose result can take its 64 bits from an operand of another dtype.
_CONVERTS: Final = ("convert_element_type", "dot_general")


def origins_of(closed: Any, given: Sequence[str] | None = None) -> list[str]:
    """Return for each result where its 64 bits come from: "input", "constant" or "default".

    Args:
        closed: The closed jaxpr.
        given: The origins of its arguments; by default they are parts of the element.
    """
    jaxpr = closed.jaxpr
    origins = given or ["input"] * len(jaxpr.invars)
    pairs = zip(jaxpr.invars, origins, strict=True)
    known: dict[Any, str] = {var: origin for var, origin in pairs if _is_wide(var)}
    for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
        if _is_wide(var):
            known[var] = "constant" if fits_32_bits(value) else "input"
    for equation in jaxpr.eqns:
        inside = _origins_inside(equation, known)
        for number, var in enumerate(equation.outvars):
            if _is_wide(var):
                known[var] = inside[number] if inside else _origin(equation, var, known)
    return [_origin_of(var, known) for var in jaxpr.outvars]


def _origins_inside(equation: Any, known: dict[Any, str]) -> list[str]:
    """Return the origins for the results of a jitted inner function, such as most of jax.numpy."""
    if equation.primitive.name not in ("jit", "pjit") or not any(map(_is_wide, equation.outvars)):
        return []
    inside = origins_of(
        equation.params["jaxpr"], [_origin_of(var, known) for var in equation.invars]
    )
    # The jaxpr of `2 ** x` only tests the bits of x, yet its result is as wide as x.
    pairs = zip(inside, equation.outvars, strict=True)
    return ["input" if _origin(equation, var, known) == "input" else one for one, var in pairs]


def _origin(equation: Any, result: Any, known: dict[Any, str]) -> str:
    converts = equation.primitive.name in _CONVERTS
    operands = [
        _origin_of(var, known)
        for var in equation.invars
        if converts or getattr(var.aval, "dtype", None) == result.aval.dtype
    ]
    if "input" in operands or equation.params.get("name") == KEEPS_64_BITS:
        return "input"
    return "constant" if operands and set(operands) == {"constant"} else "default"


def _is_wide(var: Any) -> bool:
    return getattr(var.aval, "dtype", None) in NARROWER


def _origin_of(var: Any, known: dict[Any, str]) -> str:
    literal = getattr(var, "val", None)  # a literal in the equation
    if literal is None:
        return known.get(var, "default")
    big = var.aval.dtype in NARROWER and not fits_32_bits(literal)
    return "input" if big else "default"
