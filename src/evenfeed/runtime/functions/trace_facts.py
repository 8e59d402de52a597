"""Finds the places in a trace where an index may be out of range."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Final, cast

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


# A loop that ends when it likes is taken to make so many turns.
_TURNS: Final = 1024
_CUBIC: Final = frozenset(
    {"cholesky", "eig", "eigh", "geqrf", "householder_product", "lu", "svd", "triangular_solve"}
)


def work_of(jaxpr: Any) -> int:
    """Return about how many numbers are computed or looked at on the way to the results."""
    return sum(map(_work, jaxpr.eqns))


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """Yield the functions that an equation calls: of a loop, a branch, a function within the function."""
    for value in equation.params.values():
        is_several = isinstance(value, (list, tuple))
        for inner in cast("Iterable[Any]", value if is_several else (value,)):
            jaxpr = getattr(inner, "jaxpr", inner)
            if getattr(jaxpr, "eqns", None):
                yield jaxpr


def _work(equation: Any) -> int:
    inner = sum(map(work_of, inner_jaxprs(equation)))
    if inner:
        return inner * _turns(equation)
    results = sum(map(_size, equation.outvars))
    return max(results * _each(equation), *map(_size, equation.invars), 1)


def _turns(equation: Any) -> int:
    match equation.primitive.name:
        case "scan":
            return equation.params["length"]
        case "while":
            return _TURNS
        case _:
            return 1


def _each(equation: Any) -> int:
    """Return how many numbers one number of the result is made of."""
    match equation.primitive.name:
        case "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            return prod(shape[axis] for axis in contracted)
        case "conv_general_dilated":
            return _size(equation.invars[1])
        case name if name in _CUBIC:
            return equation.invars[0].aval.shape[-1]
        case _:
            return 1


def _size(variable: Any) -> int:
    return prod(getattr(variable.aval, "shape", ()))
