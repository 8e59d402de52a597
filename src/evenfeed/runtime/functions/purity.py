"""Detects functions that draw random numbers, which a trace would draw once for all elements."""

import random
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core.side_effects import Effect, Effects

_DEPTH: Final = 4  # a generator in an attribute of an object in a list of a closure
_WIDTH: Final = 100  # a larger container holds data, not generators
_FUNCTIONS: Final = (FunctionType, MethodType, partial)
_GENERATORS: Final = (random.Random, np.random.Generator, np.random.RandomState)


def generators(function: object) -> list[Any]:
    """Return the random generators that a function can reach: in its closure, globals, defaults and object."""
    found: dict[int, Any] = {}
    _collect(function, found, set(), _DEPTH)
    return list(found.values())


def uses_generator(function: object) -> bool:
    """Return True if a function, or one that it calls by name, refers to a random generator."""
    return any(isinstance(value, _GENERATORS) for value in named_by(function, _DEPTH))


def named_by(function: object, depth: int = 0) -> Iterator[Any]:
    """Yield the values that a callable refers to, and those of functions among them, up to `depth`."""
    match function:
        case FunctionType():
            values = list(parts_of_function(function))
        case MethodType():
            own = own_attributes(function.__self__, function.__func__)
            values = [*named_by(function.__func__), *own.values()]
        case partial():
            held = cast("partial[Any]", function)
            values = [*held.args, *held.keywords.values(), *named_by(held.func)]
        case _:
            call = call_of(function)
            values = [] if call is None else list(named_by(MethodType(call, function)))
    yield from values
    for value in values if depth else ():
        if isinstance(value, _FUNCTIONS) or call_of(value) is not None:
            yield from named_by(cast("object", value), depth - 1)


def call_of(function: object) -> FunctionType | None:
    """Return the `__call__` method of an object of a user class."""
    call = vars(cast("type[Any]", type(function))).get("__call__")
    return call if isinstance(call, FunctionType) else None


def own_attributes(owner: object, function: object) -> dict[str, Any]:
    """Return the attributes of an object that one of its methods uses."""
    held: Any = getattr(owner, "__dict__", None)
    if not isinstance(held, dict) or isinstance(owner, type):
        return {}
    names = _names_used(cast("type[Any]", type(owner)), function)
    return {name: value for name, value in cast("dict[str, Any]", held).items() if name in names}


def _names_used(kind: type, function: object) -> set[str]:
    """Return the names that a method uses, directly and through methods that it calls."""
    found: set[str] = set()
    pending = [function]
    while pending:
        method = pending.pop()
        names = set(names_of(method.__code__)) if isinstance(method, FunctionType) else set[str]()
        pending += [getattr(kind, name, None) for name in names - found]
        found |= names
    return found


@final
class RandomStates:
    """A snapshot of the states of the global Python and NumPy generators, and of others."""

    def __init__(self, reached: Iterable[Any] = ()) -> None:
        self._held = [(one, _state(one)) for one in (random, np.random, *reached)]

    def have_changed(self) -> bool:
        """Return True if numbers were drawn since the snapshot."""
        return any(_frozen(_state(one)) != _frozen(old) for one, old in self._held)

    def restore(self) -> None:
        """Restore the states, so that the generators draw the same numbers again."""
        for generator, state in self._held:
            if isinstance(generator, np.random.Generator):
                generator.bit_generator.state = state
            elif generator is random or isinstance(generator, random.Random):
                generator.setstate(state)
            else:
                generator.set_state(state)


@contextmanager
def chance_noted(function: object, effects: Effects) -> Generator[None]:
    """Record the effect DRAWS if user code in this context draws random numbers."""
    before = RandomStates(generators(function))
    try:
        yield
    finally:
        if before.have_changed():
            effects.add(Effect.DRAWS)


def _state(generator: Any) -> Any:
    if generator is random or isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state(legacy=False)


def _frozen(state: Any) -> Any:
    """Return a state that can be compared, with arrays as bytes."""
    if isinstance(state, dict):
        items = cast("dict[str, Any]", state)
        return {key: _frozen(value) for key, value in items.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state


def _collect(value: Any, found: dict[int, Any], seen: set[int], depth: int) -> None:
    if depth < 0 or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, _GENERATORS):
        found[id(value)] = value
        return
    for part in _parts(value):
        _collect(part, found, seen, depth - 1)


def _parts(value: Any) -> Iterable[Any]:
    match value:
        case FunctionType():
            return parts_of_function(value)
        case MethodType():
            return (value.__self__, value.__func__)
        case partial():
            held = cast("partial[Any]", value)
            return (held.func, *held.args, *held.keywords.values())
        case dict():
            return _if_small(cast("dict[Any, Any]", value).values())
        case list() | tuple() | set():
            return _if_small(cast("Iterable[Any]", value))
        case _:
            return _attributes(value)


def _if_small(values: Any) -> Iterable[Any]:
    return values if len(values) <= _WIDTH else ()


def _attributes(value: Any) -> Iterable[Any]:
    kind = cast("type[Any]", type(value))
    held = getattr(value, "__dict__", None)
    if isinstance(value, type) or not isinstance(held, dict) or _is_library_class(kind):
        return ()
    own = vars(kind).get("__call__")
    return (*_if_small(list(cast("dict[str, Any]", held).values())), own)


def _is_library_class(kind: type) -> bool:
    """Return True if a class belongs to a library; such objects, like modules, can reach everything."""
    return kind.__module__.partition(".")[0] in ("builtins", "jax", "jaxlib", "numpy", "evenfeed")


def parts_of_function(function: FunctionType) -> Iterator[Any]:
    """Yield the values that a function uses in addition to its arguments."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the name has no value yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = function.__globals__
    yield from (names[name] for name in names_of(function.__code__) if name in names)


def names_of(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that a function uses, including its inner functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_of(constant)
