"""What a function closes over: whether two functions do the same, and the arrays in their closures.

A function that is defined inside a loop is a new object in each iteration, with new arrays in its closure.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, NamedTuple, cast

from evenfeed.core.captures import bound_values, with_bound_values
from evenfeed.core.lazy import dis
from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.function.compiler import constant_key
from evenfeed.replicas.function.function import Function, Method
from evenfeed.replicas.function.outputs import is_tensor_leaf
from evenfeed.replicas.key_orders import flattened
from evenfeed.tensors.device_arrays import is_traced

# Stands for an array in a function that is stored without its arrays.
HOLE: Final = object()


class NotComparable(Exception):  # noqa: N818 - a result, not an error
    """The function cannot be compared with others."""


class OpenedFunction(NamedTuple):
    """A function or container: its identity, its parts, and how to rebuild it from other parts."""

    label: Any
    parts: Sequence[Any]
    make: Callable[[Sequence[Any]], Any]


def identity(function: Callable[..., Any], arrays: list[Any]) -> Any:
    """Return a key that is equal for functions that do the same, and append the arrays in the closure to `arrays`.

    Raises:
        NotComparable: There is no such key, because the function assigns to variables of an enclosing function.
    """
    key = _identity(function, arrays, ())
    try:
        hash(key)
    except TypeError:
        raise NotComparable from None
    return key


def _identity(value: Any, arrays: list[Any], ancestors: tuple[int, ...]) -> Any:
    if is_array(value):
        arrays.append(value)
        return HOLE
    if isinstance(value, Method):  # bound to one object: its function is the same each time
        return constant_key(value.function)
    found = None if id(value) in ancestors else opened(value)
    if found is None:
        return constant_key(value)
    inside = (*ancestors, id(value))
    return found.label, tuple(_identity(part, arrays, inside) for part in found.parts)


def replaced(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """Return a function with other arrays in its closure, in the order of `identity`."""
    return _replaced(function, iter(arrays), ()) if arrays else function


def _replaced(value: Any, arrays: Iterator[Any], ancestors: tuple[int, ...]) -> Any:
    if is_array(value):
        return next(arrays)
    if isinstance(value, Method):
        return value
    found = None if id(value) in ancestors else opened(value)
    if found is None:
        return value
    inside = (*ancestors, id(value))
    parts = [_replaced(part, arrays, inside) for part in found.parts]
    same = all(new is old for new, old in zip(parts, found.parts, strict=True))
    return value if same else found.make(parts)


def with_swapped(function: Callable[..., Any], swap: Callable[[Any], Any]) -> Any:
    """Return a function with other objects in its closure: `swap` returns the new object, or its argument."""
    return _swapped(function, swap, ())


def closed_over(function: Callable[..., Any], is_wanted: Callable[[Any], bool]) -> list[Any]:
    """Return the wanted objects in a function's closure; for a method, its object counts too."""
    found: list[Any] = []

    def note(value: Any) -> Any:
        if not is_wanted(value):
            return value
        found.append(value)
        return HOLE

    with_swapped(function, note)
    return found


def spread_arrays(function: Callable[..., Any], given: Sequence[Any]) -> list[Any]:
    """Return the arrays among the arguments or in the closure that lie on several devices.

    They must become inputs of the trace of one replica's function. As constants they would keep their sharding, which
    has no meaning there: JAX rejects some operations on them.
    """
    found = [*filter(_is_spread, given), *closed_over(function, _is_spread)]
    return list({id(array): array for array in found}.values())


def _is_spread(value: Any) -> bool:
    if not isinstance(value, jax.Array) or is_traced(value):
        return False
    sharding: Any = value.sharding
    return len(sharding.device_set) > 1


def _swapped(value: Any, swap: Callable[[Any], Any], ancestors: tuple[int, ...]) -> Any:
    new = swap(value)
    if new is not value:
        return new
    try:
        found = None if id(value) in ancestors else opened(value)
    except NotComparable:  # a copy of it would assign to its own variables
        return value
    if found is None:
        return value
    inside = (*ancestors, id(value))
    parts = [_swapped(part, swap, inside) for part in found.parts]
    same = all(new is old for new, old in zip(parts, found.parts, strict=True))
    return value if same else found.make(parts)


def is_array(value: Any) -> bool:
    """Return True if a value in a closure is an argument of the function's program."""
    return value is HOLE or is_tensor_leaf(value)


def opened(value: Any) -> OpenedFunction | None:
    """Return the parts of a function or container; None for other values.

    Raises:
        NotComparable: The function assigns to variables of an enclosing function.
    """
    match value:
        case FunctionType():
            return _opened_function(value)
        case MethodType():
            return OpenedFunction(MethodType, (value.__func__, value.__self__), _method_of)
        case Function():
            return _opened_compiled(value)
        case partial():
            return _opened_partial(cast("partial[Any]", value))
        case _:
            return _opened_tree(value)


def _method_of(parts: Sequence[Any]) -> MethodType:
    return MethodType(parts[0], parts[1])


def _opened_compiled(function: Function) -> OpenedFunction:
    signature = function.input_signature

    def make(parts: Sequence[Any]) -> Function:
        return Function(parts[0], signature)

    return OpenedFunction((Function, repr(signature)), (function.python_function,), make)


def _opened_tree(value: Any) -> OpenedFunction | None:
    leaves, tree = flattened(value)
    if len(leaves) == 1 and leaves[0] is value:
        return None

    def make(parts: Sequence[Any]) -> Any:
        return tree.unflatten(parts)

    return OpenedFunction(tree, leaves, make)


def _opened_function(function: FunctionType) -> OpenedFunction:
    code = function.__code__
    if _assigns_outside(code):
        raise NotComparable
    label = code, id(function.__globals__), tuple(function.__kwdefaults__ or ())
    return OpenedFunction(label, bound_values(function), partial(with_bound_values, function))


def _opened_partial(function: "partial[Any]") -> OpenedFunction:
    names = tuple(function.keywords)
    count = len(function.args)

    def make(parts: Sequence[Any]) -> "partial[Any]":
        named = dict(zip(names, parts[1 + count :], strict=True))
        return partial(parts[0], *parts[1 : 1 + count], **named)

    return OpenedFunction(
        (partial, names), [function.func, *function.args, *function.keywords.values()], make
    )


@lru_cache(maxsize=1024)
def _assigns_outside(code: CodeType) -> bool:
    """Return True if code, or a function in it, assigns to a variable of an enclosing function (`nonlocal`)."""
    return _assigns_to(code, frozenset(code.co_freevars))


def _assigns_to(code: CodeType, names: frozenset[str]) -> bool:
    if not names:
        return False
    stores = ("STORE_DEREF", "DELETE_DEREF")
    if any(step.opname in stores and step.argval in names for step in dis.get_instructions(code)):
        return True
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return any(_assigns_to(each, names & frozenset(each.co_freevars)) for each in inner)
