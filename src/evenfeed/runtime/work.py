"""Estimates how much a traced function computes for one element."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Final, cast

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
