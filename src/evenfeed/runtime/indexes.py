"""Finds the places in a trace where an index may be out of range."""

from collections.abc import Iterator
from typing import Any, Final

from evenfeed.runtime.work import inner_jaxprs

_READS: Final = ("gather", "dynamic_slice")


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in inner_jaxprs(equation):
            yield from _equations(inner)


def indexing(jaxpr: Any) -> tuple[bool, bool]:
    """Return whether the function reads where JAX would make a wrong place valid, and whether at a fixed place."""
    reads = False
    for equation in _equations(jaxpr):
        name = equation.primitive.name
        if name.startswith("scatter") or "CLIP" in str(equation.params.get("mode", "")):
            return False, False  # asked for by name: what is out of range is dropped, or clipped
        reads = reads or name in _READS
    return reads, reads and _reads_at_fixed_place(jaxpr)


def _reads_at_fixed_place(jaxpr: Any) -> bool:
    depends = set(jaxpr.invars)
    for equation in jaxpr.eqns:
        variables = [var for var in equation.invars if not hasattr(var, "val")]
        if equation.primitive.name in _READS and depends.isdisjoint(variables[1:]):
            return True
        if not depends.isdisjoint(variables):
            depends.update(equation.outvars)
    return False
