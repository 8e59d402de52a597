"""Small tensors that a function captures. Functions that differ only in their values can share a trace.

A function that makes datasets makes new functions, too: `flat_map(lambda x: data.map(lambda y: y + x))` has another inner
function for each `x`. Tracing one takes as long as calling it for hundreds of elements.
"""

from collections.abc import Hashable, Sequence
from dis import get_instructions, hasjabs, hasjrel
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, cast

import numpy as np

from evenfeed.core.captures import bound_values, constant_key, names_used, with_bound_values
from evenfeed.core.conversion import Array

# Larger tensors are not copied for each function.
_MOST_BYTES: Final = 1 << 10

# These compute the same with a tensor and with what stands for it in a trace. Others may look at its values, and raise.
_ALIKE: Final = frozenset(
    {"abs", "add", "cast", "divide", "identity", "maximum", "minimum", "multiply", "negative"}
    | {"reduce_max", "reduce_min", "reduce_sum", "sign", "square", "subtract", "sum", "truediv"}
    | {"equal", "greater", "greater_equal", "less", "less_equal", "not_equal", "where"}
    | {"logical_and", "logical_not", "logical_or", "logical_xor", "math", "numpy"}
    | {"bool", "dtype", "float16", "float32", "float64", "int16", "int32", "int64", "int8"}
    | {"uint16", "uint32", "uint64", "uint8"}
)
# Builtins that look at some of their arguments only.
_CHOOSING: Final = frozenset({"all", "any", "max", "min"})
_JUMPS: Final = frozenset((*hasjrel, *hasjabs))
_OPERATING: Final = ("BINARY_", "COMPARE_", "CONTAINS_")

_OPERATORS_ALIKE: Final = frozenset("+-*/&|^")


def key_without_values(function: object) -> Hashable | None:
    """Return a key that functions have in common only if they differ in the values of captured tensors.

    None if they may differ in more, or capture no tensors.
    """
    if type(function) is not FunctionType or not tensors_of(function):
        return None
    code = function.__code__
    if _catches(code) or not _is_alike(function):
        return None
    return constant_key(function, _kind_of)


def key_of_straight_code(function: object) -> Hashable | None:
    """Return a key that functions have in common only if they differ in captured tensors, and do the same steps for all.

    So if one of them needs the values of its arguments, all do.
    """
    if type(function) is not FunctionType or not tensors_of(function):
        return None
    return constant_key(function, _kind_of) if _is_straight(function.__code__) else None


@lru_cache(maxsize=1024)
def _is_straight(code: CodeType) -> bool:
    """Return True if no value decides which steps code does, or which of several values it uses."""
    steps = [step.opname for step in get_instructions(code)]
    built = next((at for at, name in enumerate(steps) if name.startswith("BUILD_")), len(steps))
    return (
        not any(isinstance(part, CodeType) for part in code.co_consts)
        and not any(step.opcode in _JUMPS for step in get_instructions(code))
        and _CHOOSING.isdisjoint(code.co_names)
        # A list may be compared, indexed or repeated by a value.
        and not any(name.startswith(_OPERATING) for name in steps[built:])
        and not _catches(code)
    )


def tensors_of(function: object) -> tuple[Array, ...]:
    """Return copies of the tensors that a function captures. The user may write to the originals."""
    if type(function) is not FunctionType:
        return ()
    return tuple(np.array(value) for value in bound_values(function) if _is_tensor(value))


def with_tensors(function: FunctionType, tensors: Sequence[Any]) -> FunctionType:
    """Return the function with other values for the tensors that it captures."""
    given = iter(tensors)
    values = [next(given) if _is_tensor(value) else value for value in bound_values(function)]
    return with_bound_values(function, values)


def _kind_of(value: Any) -> str | None:
    if not _is_tensor(value):
        return None
    return f"{type(value)} {value.dtype} {np.shape(value)}"


def _is_tensor(value: Any) -> bool:
    if not isinstance(value, (np.ndarray, np.generic)):
        return False
    array = cast("Array", value)
    return array.dtype.kind in "biuf" and array.nbytes <= _MOST_BYTES


def _is_alike(function: FunctionType) -> bool:
    """Return True if a function uses the values of tensors only in ways that a trace shows."""
    names = function.__globals__
    used = (name for name in names_used(function.__code__) if not _is_module(names.get(name)))
    return _ALIKE.issuperset(used) and _OPERATORS_ALIKE.issuperset(_operators(function.__code__))


def _is_module(value: object) -> bool:
    return isinstance(value, ModuleType)


def _operators(code: CodeType) -> set[str]:
    """Return the operators between two values in a function and its inner functions, without the = of +=."""
    own = {
        step.argrepr.rstrip("=") for step in get_instructions(code) if step.opname == "BINARY_OP"
    }
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return own.union(*map(_operators, inner))


def _catches(code: CodeType) -> bool:
    """Return True if code may go on after an error, such as that for a value which a trace does not have."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return bool(code.co_exceptiontable) or any(map(_catches, inner))
