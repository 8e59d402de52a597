"""Keeps values beside objects that must not change, for as long as these live."""

import weakref
from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, TypeVar, final

Value = TypeVar("Value")


@final
class WeakTable(Generic[Value]):
    """Maps objects to values. An entry lives as long as its object.

    Objects are told apart by identity: equal objects have separate values.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], Value]] = {}
        # Reentrant, because a value that is being made may look up others.
        self._lock = RLock()

    def of(self, owner: object, make: Callable[[], Value]) -> Value:
        """Return the value of an object; `make` creates it at the first call."""
        entry = self._entries.get(id(owner))  # as `get` does: a call would double the time
        if entry is not None and entry[0]() is owner:
            return entry[1]
        with self._lock:  # two threads must get the same value
            found = self.get(owner)
            return self.put(owner, make()) if found is None else found

    def get(self, owner: object) -> Value | None:
        """Return the value of an object; None if it has none."""
        entry = self._entries.get(id(owner))
        return None if entry is None or entry[0]() is not owner else entry[1]

    def put(self, owner: object, value: Value) -> Value:
        """Set the value of an object, and return it."""
        key = id(owner)

        def forget(ref: "weakref.ref[Any]") -> None:
            # The id may belong to another object by now.
            if (entry := self._entries.get(key)) is not None and entry[0] is ref:
                del self._entries[key]

        self._entries[key] = weakref.ref(owner, forget), value
        return value
