"""Saves and restores the Python objects that a user function changes: counters, lists, attributes.

evenfeed calls a function a few times to inspect it, and these calls must leave no trace. Only objects that the
function names are covered: closure variables, globals and attributes of its own object.
"""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, TypeAlias, cast, final

import numpy as np

from evenfeed.core import iteration
from evenfeed.core.captures import (
    Place,
    call_of,
    captured_values,
    named_by,
    own_attributes,
    places_of,
)

_DEPTH: Final = 2  # a list in the closure of a function that the function calls
_WIDTH: Final = 100  # a larger container holds data

_MAPPINGS: Final = (dict, Counter, OrderedDict, defaultdict)
_LISTS: Final = (list, deque, bytearray)
_CONTAINERS: Final = (*_MAPPINGS, *_LISTS, set)
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None))

# Restores an object, and returns True if it had changed.
Undo: TypeAlias = Callable[[], bool]


@final
class ReachableState:
    """A snapshot of the objects that a function uses."""

    def __init__(self, function: object) -> None:
        self._undo = list(_undoing(function, set(), _DEPTH))

    def restore(self) -> bool:
        """Restore the objects. Return True if one of them had changed."""
        changed = [undo() for undo in self._undo]
        return any(changed)


def uses_iterator(function: object) -> bool:
    """Return True if a function refers to a Python iterator: a probe would consume an element of it."""
    return any(map(_is_iterator, named_by(function)))


def _is_iterator(value: object) -> bool:
    return isinstance(value, Iterator) and not isinstance(value, iteration.Iterator)


def _undoing(value: Any, seen: set[int], depth: int) -> Iterator[Undo]:
    if depth < 0 or id(value) in seen:
        return
    seen.add(id(value))
    match value:
        case FunctionType():
            yield from map(_undo_place, places_of(value))
            parts: Iterable[Any] = captured_values(value)
        case MethodType():
            undoing = _undo_attributes(value.__self__, value.__func__)
            yield from map(_unseen, undoing) if _is_own(value.__self__) else undoing
            parts, depth = (value.__func__,), depth + 1
        case partial():
            held = cast("partial[Any]", value)
            parts, depth = (held.func, *held.args, *held.keywords.values()), depth + 1
        case _ if (call := call_of(value)) is not None:
            parts, depth = (MethodType(call, value),), depth + 1
        case _:
            yield from _undo_content(value)
            parts = _members(value)
    for part in parts:
        yield from _undoing(part, seen, depth - 1)


def _is_own(owner: object) -> bool:
    """Return True for an object of evenfeed, such as a `tf.function`, whose attributes are not the user's."""
    return type(owner).__module__.partition(".")[0] == "evenfeed"


def _unseen(undo: Undo) -> Undo:
    """Return what undoes a change that does not count as one."""
    return lambda: undo() and False


def _undo_place(place: Place) -> Undo:
    old = dict(place.items())

    def undo() -> bool:
        new = dict(place.items())
        changed = [key for key, value in old.items() if key not in new or new[key] is not value]
        for key in changed:
            place.put(key, old[key])
        return bool(changed)

    return undo


def _undo_attributes(owner: Any, function: object) -> Iterator[Undo]:
    """Undo what a method does to plain values and small containers. Other attributes may depend on each other."""
    own = own_attributes(owner, function)
    old = {name: value for name, value in own.items() if isinstance(value, _PLAIN)}
    held = cast("dict[str, Any]", vars(owner)) if old else {}

    def undo() -> bool:
        new = {name: held[name] for name in old if isinstance(held.get(name), _PLAIN)}
        changed = {name: old[name] for name, value in new.items() if value is not old[name]}
        held.update(changed)
        return bool(changed)

    yield undo
    for value in own.values():
        yield from _undo_content(value)


def _undo_content(value: Any) -> Iterator[Undo]:
    kind = cast("Any", type(value))
    if kind is np.ndarray:
        if value.flags.writeable and value.size <= _WIDTH:
            yield partial(_recopy, value, np.array(value))
    elif kind in _CONTAINERS and len(value) <= _WIDTH:
        fill = value.extend if kind in _LISTS else value.update
        yield partial(_refill, value, fill, dict(value) if kind in _MAPPINGS else value.copy())


def _recopy(array: Any, old: Any) -> bool:
    changed = array.tobytes() != old.tobytes()
    np.copyto(array, old)
    return changed


def _refill(container: Any, fill: Callable[[Any], None], old: Any) -> bool:
    changed = not _is_same(container, old)
    if changed:
        container.clear()
        fill(old)
    return changed


def _is_same(container: Any, old: Any) -> bool:
    """Return True if both hold the same objects. Comparing values could produce a tensor."""
    if len(container) != len(old):
        return False
    if isinstance(old, dict):
        return all(key in container and container[key] is old[key] for key in cast("Any", old))
    return all(a is b for a, b in zip(container, old, strict=True))


def _members(value: Any) -> Iterable[Any]:
    if type(value) in _MAPPINGS and len(value) <= _WIDTH:
        return list(value.values())
    return list(value) if type(value) in (list, tuple, deque) and len(value) <= _WIDTH else ()
