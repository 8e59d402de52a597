"""Recognizes functions that were seen before: comparing what they close over takes less time than a key for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, NamedTuple, final

from evenfeed.core.captures import bound_values
from evenfeed.replicas.function.closures import HOLE, identity, is_array, opened
from evenfeed.replicas.function.function import Method


@final
class FunctionKey:
    """A key whose hash is computed once, and that is compared by identity first."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: Any) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, FunctionKey) and self._parts == other._parts)


class _Seen(NamedTuple):
    """A value in a closure: what it was, and its parts if it is a function or container."""

    value: Any
    label: Any = None
    parts: "tuple[_Seen, ...] | None" = None


@final
@dataclass(slots=True)
class _Known:
    seen: _Seen
    key: FunctionKey


@final
class KnownFunctions:
    """The last function of each code, with its key."""

    def __init__(self) -> None:
        self._known: dict[CodeType, _Known] = {}

    def key(self, function: FunctionType, arrays: list[Any]) -> FunctionKey:
        """Return what `identity` returns, as a `FunctionKey`: the same object as long as nothing changes.

        Raises:
            NotComparable: There is no such key.
        """
        known = self._known.get(function.__code__)
        if known is not None:
            found: list[Any] = []
            if _is_same(known.seen, function, found):
                arrays += found
                return known.key
        key = FunctionKey(identity(function, arrays))
        self._known[function.__code__] = _Known(_seen(function, ()), key)
        return key


def _seen(value: Any, ancestors: tuple[int, ...]) -> _Seen:
    if is_array(value):
        return _Seen(HOLE)
    is_leaf = isinstance(value, Method) or id(value) in ancestors
    found = None if is_leaf else opened(value)
    if found is None:
        return _Seen(value)
    inside = (*ancestors, id(value))
    return _Seen(None, found.label, tuple(_seen(part, inside) for part in found.parts))


def _is_same(seen: _Seen, value: Any, arrays: list[Any]) -> bool:
    """Return True if a value has the key of one that was seen; append the arrays in it to `arrays`."""
    parts = seen.parts
    if parts is None:
        if seen.value is not HOLE:
            # A bound method is a new object each time.
            return value is seen.value or (isinstance(value, Method) and value == seen.value)
        arrays.append(value)
        return is_array(value)
    if type(value) is FunctionType:
        values: Sequence[Any] = bound_values(value)
        label = value.__code__, id(value.__globals__), tuple(value.__kwdefaults__ or ())
    else:
        found = opened(value)
        if found is None:
            return False
        values, label = found.parts, found.label
    if label != seen.label or len(values) != len(parts):
        return False
    return all(_is_same(part, each, arrays) for part, each in zip(parts, values, strict=True))
