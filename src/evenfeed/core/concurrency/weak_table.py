"""Keeps values beside objects that must not change, for as long as these live."""

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

Value = TypeVar("Value")


@final
class WeakTable(Generic[Value]):
    """Maps objects to values. An entry lives as long as its object, so a value must not refer to the object.

    Objects are told apart by identity: equal objects have separate values. There is no lock, which a thread could hold
    while the process is forked.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], Value]] = {}

    def of(self, owner: object, make: Callable[[], Value]) -> Value:
        """Return the value of an object, the same in all threads. `make` creates it, and may be called twice."""
        entry = self._entries.get(id(owner))
        if entry is None:
            entry = self._entries.setdefault(id(owner), self._entry(owner, make()))
        return entry[1]

    def get(self, owner: object) -> Value | None:
        """Return the value of an object; None if it has none."""
        entry = self._entries.get(id(owner))
        return None if entry is None else entry[1]

    def put(self, owner: object, value: Value) -> Value:
        """Set the value of an object, and return it."""
        self._entries[id(owner)] = self._entry(owner, value)
        return value

    def _entry(self, owner: object, value: Value) -> tuple["weakref.ref[Any]", Value]:
        key = id(owner)

        def forget(ref: "weakref.ref[Any]") -> None:
            # Called before the memory of the object, and so its id, is used again.
            if (entry := self._entries.get(key)) is not None and entry[0] is ref:
                del self._entries[key]

        return weakref.ref(owner, forget), value
