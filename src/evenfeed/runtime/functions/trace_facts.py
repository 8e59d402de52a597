"""Facts about a jaxpr: whether an index may be out of range, which arguments it uses, and how much work it does."""

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, Final, cast

import numpy as np

from evenfeed.core.traced.kernel_stages import INDEX_CHECK

# Calls of functions with traces of their own.
CALLS: Final = ("jit", "pjit")

_READS: Final = ("gather", "dynamic_slice")


def is_index_check(equation: Any) -> bool:
    """Return True if an equation only marks indices, which must be in range."""
    return equation.primitive.name in CALLS and equation.params["name"] == INDEX_CHECK


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in inner_jaxprs(equation):
            yield from _equations(inner)


def indexing(jaxpr: Any) -> tuple[bool, bool]:
    """Return whether JAX would clamp an out-of-range index, and whether one of the indices is constant."""
    reads = False
    for equation in _equations(jaxpr):
        name = equation.primitive.name
        if name.startswith("scatter") or "CLIP" in str(equation.params.get("mode", "")):
            return False, False  # the user chose what happens out of range: dropped or clipped
        reads = reads or name in _READS
    return reads, reads and _has_constant_index(jaxpr)


def _has_constant_index(jaxpr: Any) -> bool:
    depends = set(jaxpr.invars)
    for equation in jaxpr.eqns:
        variables = [var for var in equation.invars if not hasattr(var, "val")]
        if equation.primitive.name in _READS and depends.isdisjoint(variables[1:]):
            return True
        if not depends.isdisjoint(variables):
            depends.update(equation.outvars)
    return False


# Operations on floats that choose, move or compare numbers: none of them rounds.
_MOVES: Final = frozenset(
    {
        *(
            "abs",
            "broadcast_in_dim",
            "concatenate",
            "convert_element_type",
            "copy",
            "dynamic_slice",
        ),
        *("dynamic_update_slice", "expand_dims", "gather", "iota", "neg", "pad", "reshape", "rev"),
        *("select_n", "slice", "sort", "split", "squeeze", "stop_gradient", "transpose"),
    }
)


def rounds(jaxpr: Any) -> bool:
    """Return True if the last bits of a result may depend on how it is computed, or by which library."""
    return any(map(_rounds, _equations(jaxpr)))


def _rounds(equation: Any) -> bool:
    floats_in, floats_out = (
        any(_is_inexact(variable) for variable in variables)
        for variables in (equation.invars, equation.outvars)
    )
    name = equation.primitive.name
    if name == "convert_element_type":
        return floats_in and not floats_out  # undefined for values that do not fit
    has_inner = next(inner_jaxprs(equation), None) is not None
    return floats_out and not has_inner and name not in _MOVES


def _is_inexact(variable: Any) -> bool:
    dtype = getattr(variable.aval, "dtype", None)
    # The dtype of random keys is JAX's own.
    return dtype is not None and not (isinstance(dtype, np.dtype) and dtype.kind in "biu")


# The assumed number of iterations of a while loop.
_WHILE_ITERATIONS: Final = 1024
_CUBIC: Final = frozenset(
    {"cholesky", "eig", "eigh", "geqrf", "householder_product", "lu", "svd", "triangular_solve"}
)

# Functions that take several times as long for a number as an addition does.
_TRANSCENDENTAL: Final = frozenset(
    {
        *(
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atan2",
            "atanh",
            "cbrt",
            "cos",
            "cosh",
            "digamma",
        ),
        *(
            "erf",
            "erf_inv",
            "erfc",
            "exp",
            "exp2",
            "expm1",
            "lgamma",
            "log",
            "log1p",
            "logistic",
            "pow",
        ),
        *("sin", "sinh", "tan", "tanh"),
    }
)
_OF_TRANSCENDENTAL: Final = 8
# They read as many numbers of their first argument as they return.
_PICKING: Final = frozenset({"dynamic_slice", "gather"})
# A comparison in a sort.
_OF_COMPARISON: Final = 4


def work_of(jaxpr: Any) -> int:
    """Return roughly how many numbers a jaxpr computes or reads, in additions."""
    return sum(map(_work, jaxpr.eqns))


def inner_jaxprs(equation: Any) -> Iterator[Any]:
    """Yield the inner jaxprs of an equation: a loop body, a branch, a jitted function."""
    for value in equation.params.values():
        is_several = isinstance(value, (list, tuple))
        for inner in cast("Iterable[Any]", value if is_several else (value,)):
            jaxpr = getattr(inner, "jaxpr", inner)
            if getattr(jaxpr, "eqns", None):
                yield jaxpr


def _work(equation: Any) -> int:
    inner = sum(map(work_of, inner_jaxprs(equation)))
    if inner:
        return inner * _iterations(equation)
    results = sum(map(_size, equation.outvars))
    read = equation.invars[equation.primitive.name in _PICKING :]
    return max(results * _work_per_output(equation), *map(_size, read), 1)


def _iterations(equation: Any) -> int:
    match equation.primitive.name:
        case "scan":
            return equation.params["length"]
        case "while":
            return _WHILE_ITERATIONS
        case _:
            return 1


def _work_per_output(equation: Any) -> int:
    """Return how many additions one number of the result takes, roughly."""
    match equation.primitive.name:
        case "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            return prod(shape[axis] for axis in contracted)
        case "conv_general_dilated":
            return _size(equation.invars[1])
        case "sort":
            length = equation.invars[0].aval.shape[equation.params["dimension"]]
            return _OF_COMPARISON * int(length).bit_length()
        case name if name in _CUBIC:
            return equation.invars[0].aval.shape[-1]
        case name if name in _TRANSCENDENTAL:
            return _OF_TRANSCENDENTAL
        case _:
            return 1


def _size(variable: Any) -> int:
    return prod(getattr(variable.aval, "shape", ()))


def parts_read(jaxpr: Any, numeric: Sequence[bool]) -> frozenset[int]:
    """Return the parts of an element that a program computes with.

    Args:
        jaxpr: The program. Its arguments are the numeric parts.
        numeric: For each part, whether it is numeric.
    """
    used = {id(atom) for equation in jaxpr.eqns for atom in equation.invars}
    used.update(map(id, jaxpr.outvars))
    places = [index for index, is_numeric in enumerate(numeric) if is_numeric]
    pairs = zip(places, jaxpr.invars, strict=True)
    return frozenset(index for index, variable in pairs if id(variable) in used)
