"""Turns regular expressions into automata of tables, which compiled code runs on whole columns of ASCII text.

RE2 takes some 100 ns for each match. A table takes about one for each byte. It knows the common part of RE2's syntax:
literals, classes, groups, `|`, and greedy and lazy repetitions. What it does not know, RE2 does.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import Array

# Larger automata would not stay in a core's cache.
_MOST_STATES: Final = 256
_MOST_NODES: Final = 1000
_ASCII: Final = 128

_DIGITS: Final = frozenset(b"0123456789")
_LETTERS: Final = frozenset(range(ord("a"), ord("z") + 1)) | frozenset(
    range(ord("A"), ord("Z") + 1)
)
_ALL: Final = frozenset(range(_ASCII))
_CLASSES: Final = {
    "d": _DIGITS,
    "w": _DIGITS | _LETTERS | {ord("_")},
    "s": frozenset(b"\t\n\f\r "),
}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}


@final
@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton. State 0 has no way out.

    Attributes:
        steps: The next state for each state and byte.
        first: The state before the first byte.
        accepting: What was read up to a state is a match, if the state is this one or a later one.
    """

    steps: Array
    first: int
    accepting: int


class _Unknown(Exception):  # noqa: N818 - never leaves this module
    """The pattern needs RE2."""


# A node of the nondeterministic automaton: the bytes that it takes, and the nodes after it, the preferred one first.
class _Node(NamedTuple):
    takes: frozenset[int] | None
    after: list[int]


# Adds the nodes of a part of the pattern, given the node after it; returns the first.
_Part: TypeAlias = Callable[[list[_Node], int], int]


@cache
def searching(pattern: bytes) -> Automaton | None:
    """Return an automaton for the match that RE2 prefers among those that start at one byte.

    It is the last that the automaton accepts before it reaches state 0. None if RE2 must search: the pattern
    has parts that are unknown here, or matches empty text.
    """
    found = _automaton(pattern, all_matches=False)
    return None if found is None or found.first >= found.accepting else found


@cache
def matching(pattern: bytes) -> Automaton | None:
    """Return an automaton that accepts each text that the pattern matches from start to end; None if RE2 must."""
    return _automaton(pattern, all_matches=True)


def _automaton(pattern: bytes, *, all_matches: bool) -> Automaton | None:
    try:
        whole = _Parser(pattern.decode("ascii")).whole()
        nodes = [_Node(None, [])]  # the first node is the match
        first = whole(nodes, 0)
        return _determined(nodes, first, all_matches=all_matches)
    except (_Unknown, UnicodeDecodeError):
        return None


def _determined(nodes: Sequence[_Node], first: int, *, all_matches: bool) -> Automaton:
    """Return the deterministic automaton. Its states are the nodes where the search may be, the preferred first."""
    states: dict[tuple[int, ...], int] = {(): 0}
    found: list[tuple[int, ...]] = [()]

    def number(state: tuple[int, ...]) -> int:
        if state not in states:
            if len(found) == _MOST_STATES:
                raise _Unknown
            states[state] = len(found)
            found.append(state)
        return states[state]

    number(_reached(nodes, [first], all_matches=all_matches))
    steps: list[list[int]] = []
    for state in found:  # it grows
        row = [0] * _ASCII
        for byte in range(_ASCII):
            after = [nodes[n].after[0] for n in state if byte in (nodes[n].takes or ())]
            row[byte] = number(_reached(nodes, after, all_matches=all_matches))
        steps.append(row)
    order = np.argsort([0 in state for state in found], kind="stable")  # accepting states last
    renumbered = np.argsort(order).astype(np.uint8)
    table = renumbered[np.array(steps)][order]
    return Automaton(table, int(renumbered[1]), sum(0 not in state for state in found))


def _reached(
    nodes: Sequence[_Node], starts: Iterable[int], *, all_matches: bool
) -> tuple[int, ...]:
    """Return the nodes that take a byte, and the match, which are reached without one.

    A match ends the search of nodes that come after it, because RE2 prefers it to all that they would find.
    """
    seen: dict[int, None] = {}
    waiting = list(starts)[::-1]
    kept: list[int] = []
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen[number] = None
        node = nodes[number]
        if node.takes is not None or number == 0:
            kept.append(number)
        if number == 0 and not all_matches:
            break
        if node.takes is None:
            waiting += node.after[::-1]
    return tuple(kept)


@final
class _Parser:
    """Reads a pattern that RE2 accepts."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def whole(self) -> _Part:
        """Return the whole pattern."""
        found = self._choice()
        if self._at < len(self._pattern):
            raise _Unknown
        return found

    def _choice(self) -> _Part:
        parts = [self._sequence()]
        while self._takes("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else _either(parts)

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._next not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return _one_by_one(parts)

    def _repeated(self, part: _Part) -> _Part:
        counts = self._counts()
        if counts is None:
            return part
        lazy = self._takes("?")
        if self._next and self._next in "*+?{":
            raise _Unknown
        if _can_be_empty(part):
            raise _Unknown  # RE2 has rules of its own for a repetition that takes no text
        return _repeated(part, *counts, lazy=lazy)

    def _counts(self) -> tuple[int, int | None] | None:
        known: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._next in known:
            return known[self._read()]
        if not self._takes("{"):
            return None
        inside, closed, rest = self._pattern[self._at :].partition("}")
        least, comma, most = inside.partition(",")
        if not closed or not least.isdecimal() or (most and not most.isdecimal()):
            raise _Unknown
        self._at = len(self._pattern) - len(rest)
        return int(least), (int(most) if most else None) if comma else int(least)

    def _atom(self) -> _Part:
        char = self._read()
        if char == "(":
            if self._next == "?" and not self._pattern.startswith("?:", self._at):
                raise _Unknown
            self._at += 2 if self._next == "?" else 0
            inner = self._choice()
            self._at += 1  # the closing bracket
            return inner
        if char == "[":
            return _one_of(self._class())
        if char == ".":
            return _one_of(_ALL - {ord("\n")})
        if char == "\\":
            return _one_of(self._escaped())
        if char in "^$*+?{})]":
            raise _Unknown
        return _one_of(frozenset(char.encode()))

    def _escaped(self) -> frozenset[int]:
        char = self._read()
        if char.lower() in _CLASSES:
            found = _CLASSES[char.lower()]
            return _ALL - found if char.isupper() else found
        if char in _CONTROLS:
            return frozenset(_CONTROLS[char].encode())
        if char.isalnum() or not char.isprintable():
            raise _Unknown
        return frozenset(char.encode())

    def _class(self) -> frozenset[int]:
        inverted = self._takes("^")
        if self._next in ("]", "-"):
            raise _Unknown
        found: frozenset[int] = frozenset()
        while not self._takes("]"):
            first = self._member()
            if self._next != "-" or self._pattern.startswith("-]", self._at):
                found |= first
                continue
            self._at += 1
            last = self._member()
            if len(first) != 1 or len(last) != 1:
                raise _Unknown
            found |= frozenset(range(min(first), max(last) + 1))
        return _ALL - found if inverted else found

    def _member(self) -> frozenset[int]:
        char = self._read()
        if char == "[":
            raise _Unknown
        return self._escaped() if char == "\\" else frozenset(char.encode())

    @property
    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _read(self) -> str:
        char = self._next
        self._at += 1
        if not char:
            raise _Unknown
        return char

    def _takes(self, char: str) -> bool:
        found = self._next == char
        self._at += found
        return found


def _one_of(taken: frozenset[int]) -> _Part:
    return lambda nodes, after: _added(nodes, _Node(taken, [after]))


def _either(parts: Sequence[_Part]) -> _Part:
    def add(nodes: list[_Node], after: int) -> int:
        return _added(nodes, _Node(None, [part(nodes, after) for part in parts]))

    return add


def _one_by_one(parts: Sequence[_Part]) -> _Part:
    def add(nodes: list[_Node], after: int) -> int:
        for part in reversed(parts):
            after = part(nodes, after)
        return after

    return add


def _can_be_empty(part: _Part) -> bool:
    nodes = [_Node(None, [])]
    return 0 in _reached(nodes, [part(nodes, 0)], all_matches=True)


def _repeated(part: _Part, least: int, most: int | None, *, lazy: bool) -> _Part:
    def chosen(again: int, after: int) -> list[int]:
        return [after, again] if lazy else [again, after]

    def optional(nodes: list[_Node], after: int, end: int) -> int:
        return _added(nodes, _Node(None, chosen(part(nodes, after), end)))

    def add(nodes: list[_Node], after: int) -> int:
        if most is None:
            loop = _added(nodes, _Node(None, []))
            nodes[loop].after.extend(chosen(part(nodes, loop), after))
            # One pass must be made; entering it directly keeps the loop node a choice after that pass.
            first = loop
        else:
            first = after
            for _ in range(most - least):
                first = optional(nodes, first, after)
        for _ in range(least):
            first = part(nodes, first)
        return first

    return add


def _added(nodes: list[_Node], node: _Node) -> int:
    if len(nodes) == _MOST_NODES:
        raise _Unknown
    nodes.append(node)
    return len(nodes) - 1
