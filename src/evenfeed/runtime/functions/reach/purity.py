"""Detects functions that draw random numbers, which a trace would draw once for all elements."""

import random
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core.captures import captured_values, named_by
from evenfeed.core.side_effects import Effect, Effects
from evenfeed.core.specs import CompositeSpec, TypeSpec
from evenfeed.runtime.functions.reach.may_draw import GENERATORS, may_draw

_DEPTH: Final = 4  # a generator in an attribute of an object in a list of a closure
_WIDTH: Final = 100  # a larger container holds data, not generators


def generators(function: object) -> list[Any]:
    """Return the random generators that a function can reach: in its closure, globals, defaults and object."""
    found: dict[int, Any] = {}
    _collect(function, found, set(), _DEPTH)
    return list(found.values())


def uses_generator(function: object) -> bool:
    """Return True if a function, or one that it calls by name, refers to a random generator."""
    return any(isinstance(value, GENERATORS) for value in named_by(function, _DEPTH))


@final
class RandomStates:
    """A snapshot of the states of random generators."""

    def __init__(self, held: Iterable[Any]) -> None:
        self._held = [(one, _state(one)) for one in held]

    @classmethod
    def around(cls, function: object, elements: Iterable[TypeSpec] = ()) -> "RandomStates":
        """Return a snapshot of the generators that a function may draw from, which are none for most functions.

        Other threads draw from the global generators too. They must not be mistaken for the function, nor draw the
        same numbers again after `restore`.

        Args:
            function: The function.
            elements: The specs of its arguments. A dataset among them calls functions that are not known.
        """
        if may_draw(function) or any(isinstance(spec, CompositeSpec) for spec in elements):
            return cls((random, np.random, *generators(function)))
        return cls(())

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
def chance_noted(
    function: object, effects: Effects, elements: Iterable[TypeSpec] = ()
) -> Generator[None]:
    """Record the effect DRAWS if user code in this context draws random numbers."""
    before = RandomStates.around(function, elements)
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
    if isinstance(value, GENERATORS):
        found[id(value)] = value
        return
    for part in _parts(value):
        _collect(part, found, seen, depth - 1)


def _parts(value: Any) -> Iterable[Any]:
    match value:
        case FunctionType():
            return captured_values(value)
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
    """Return True if a class belongs to a library. Its objects are not searched: like modules, they can reach everything."""
    return kind.__module__.partition(".")[0] in ("builtins", "jax", "jaxlib", "numpy", "evenfeed")
