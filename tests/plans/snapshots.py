"""What a plan holds, down to the last attribute, to compare before and after it is read."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields
from typing import Any, Final, cast

import numpy as np

from evenfeed.plan.node import Node
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.results import Results
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.peek import Beginning

# Caches, which change no result: compiled programs and templates, and the first elements that were read to learn a spec.
_CACHES: Final = {
    InnerDatasets: {"kept"},
    RowFunction: {"_compiled", "_first_calls"},
    Results: {"_last_kinds"},
    Beginning: {"_kept"},
}


def snapshot(plan: Node) -> dict[str, Any]:
    """Return everything that a plan and its functions and files hold, by the path that leads to it.

    Objects of the user, and those of other libraries, stand for themselves.
    """
    return dict(_entries(plan, "", {}))


def _entries(value: Any, path: str, seen: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (int, float, str, bytes, type(None))):
        yield path, value
        return
    if id(value) in seen:
        yield path, seen[id(value)][1]
        return
    seen[id(value)] = value, path  # keeps the value alive, so that its id is not used again
    parts = _parts(value)
    if isinstance(value, np.ndarray):
        yield path, repr(cast("Any", value))
    elif parts is None:
        yield path, id(value)
    else:
        yield path, (type(value).__name__, len(parts))
        for name, part in parts.items():
            yield from _entries(part, f"{path}.{name}", seen)


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the parts of a value by name; None if it stands for itself."""
    if isinstance(value, Node):  # properties that it has computed once are no fields
        return {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, Mapping):
        return {repr(key): part for key, part in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence | Set):
        return {str(number): part for number, part in enumerate(cast("Sequence[Any]", value))}
    if not type(value).__module__.startswith("evenfeed.") or isinstance(value, type):
        return None
    left_out = _CACHES.get(type(value), set[str]())
    return {name: part for name, part in _attributes(value) if name not in left_out}


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if name != "__weakref__" and hasattr(value, name):
                yield name, getattr(value, name)
