"""Finds out whether a function draws random numbers: tracing would draw them once, for all elements."""

import random
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core.side_effects import Effect, Effects

_DEPTH: Final = 4  # a generator in an attribute of an object in a list of a closure
_WIDTH: Final = 100  # a container of data is not a place to keep generators in
_FUNCTIONS: Final = (FunctionType, MethodType, partial)
_GENERATORS: Final = (random.Random, np.random.Generator, np.random.RandomState)


def generators(function: object) -> list[Any]:
    """Return the random generators that a function can reach: closure, globals, defaults, its object."""
    found: dict[int, Any] = {}
    _collect(function, found, set(), _DEPTH)
    return list(found.values())


def uses_generator(function: object) -> bool:
    """Return True if a function, or one that it calls by name, names a random generator."""
    return any(isinstance(value, _GENERATORS) for value in named_by(function, _DEPTH))


def named_by(function: object, depth: int = 0) -> Iterator[Any]:
    """Yield the values that a function, a method or a partial names; and those that functions among them name."""
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
    """Return the method that runs when an object of the user's own class is called."""
    call = vars(cast("type[Any]", type(function))).get("__call__")
    return call if isinstance(call, FunctionType) else None


def own_attributes(owner: object, function: object) -> dict[str, Any]:
    """Return the attributes of an object that one of its methods names."""
    held: Any = getattr(owner, "__dict__", None)
    if not isinstance(held, dict) or isinstance(owner, type):
        return {}
    names = _names_used(cast("type[Any]", type(owner)), function)
    return {name: value for name, value in cast("dict[str, Any]", held).items() if name in names}


def _names_used(kind: type, function: object) -> set[str]:
    """Return the names that a method uses, and those that the methods which it names use."""
    found: set[str] = set()
    left = [function]
    while left:
        method = left.pop()
        names = set(names_of(method.__code__)) if isinstance(method, FunctionType) else set[str]()
        left += [getattr(kind, name, None) for name in names - found]
        found |= names
    return found


@final
class RandomStates:
    """The states of Python's and NumPy's own generators, and of others, at one time."""

    def __init__(self, reached: Iterable[Any] = ()) -> None:
        self._held = [(one, _state(one)) for one in (random, np.random, *reached)]

    def have_moved(self) -> bool:
        """Return True if something was drawn since."""
        return any(_frozen(_state(one)) != _frozen(old) for one, old in self._held)

    def put_back(self) -> None:
        """Let the generators draw again what was drawn since."""
        for generator, state in self._held:
            if isinstance(generator, np.random.Generator):
                generator.bit_generator.state = state
            elif generator is random or isinstance(generator, random.Random):
                generator.setstate(state)
            else:
                generator.set_state(state)


@contextmanager
def chance_noted(function: object, effects: Effects) -> Generator[None]:
    """Note whether users' code that is called in a block draws random numbers."""
    before = RandomStates(generators(function))
    try:
        yield
    finally:
        if before.have_moved():
            effects.add(Effect.DRAWS)


def _state(generator: Any) -> Any:
    if generator is random or isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    return generator.get_state(legacy=False)


def _frozen(state: Any) -> Any:
    """Return a state that can be compared: arrays as bytes."""
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
            return _some(cast("dict[Any, Any]", value).values())
        case list() | tuple() | set():
            return _some(cast("Iterable[Any]", value))
        case _:
            return _attributes(value)


def _some(values: Any) -> Iterable[Any]:
    return values if len(values) <= _WIDTH else ()


def _attributes(value: Any) -> Iterable[Any]:
    kind = cast("type[Any]", type(value))
    held = getattr(value, "__dict__", None)
    if isinstance(value, type) or not isinstance(held, dict) or _is_foreign(kind):
        return ()
    own = vars(kind).get("__call__")
    return (*_some(list(cast("dict[str, Any]", held).values())), own)


def _is_foreign(kind: type) -> bool:
    """Tell whether objects of this class are a library's: modules above all, which hold everything."""
    return kind.__module__.partition(".")[0] in ("builtins", "jax", "jaxlib", "numpy", "evenfeed")


def parts_of_function(function: FunctionType) -> Iterator[Any]:
    """Yield the values that a function uses besides its arguments."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that has no value yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    names = function.__globals__
    yield from (names[name] for name in names_of(function.__code__) if name in names)


def names_of(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that a function uses, also in the functions written inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_of(constant)
