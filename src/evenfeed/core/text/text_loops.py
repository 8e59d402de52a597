"""Compiled loops over texts in a buffer: splitting, packing and looking up. Importing this module imports Numba."""

from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false

_U64 = np.uint64
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)
_TAB, _CARRIAGE_RETURN, _SPACE = 9, 13, 32


@compiled
def split_at_spaces(
    data: Array, starts: Positions, stops: Positions, out: tuple[Positions, Positions, Positions]
) -> int:
    """Write where the words of each text start and stop, and how many words the texts so far have; return the last."""
    firsts, ends, counts = out
    found = 0
    for row in range(len(starts)):
        at, stop = starts[row], stops[row]
        while at < stop:
            byte = data[_U64(at)]
            if byte == _SPACE or _TAB <= byte <= _CARRIAGE_RETURN:
                at += 1
                continue
            firsts[_U64(found)] = at
            at += 1
            while at < stop:
                byte = data[_U64(at)]
                if byte == _SPACE or _TAB <= byte <= _CARRIAGE_RETURN:
                    break
                at += 1
            ends[_U64(found)] = at
            found += 1
        counts[_U64(row + 1)] = found
    return found


@compiled
def split_at(
    data: Array,
    starts: Positions,
    stops: Positions,
    separator: Array,
    out: tuple[Positions, Positions, Positions],
) -> int:
    """Do the same as `split_at_spaces` for pieces between separators, which may be empty."""
    firsts, ends, counts = out
    found, size, head = 0, len(separator), separator[0]
    for row in range(len(starts)):
        at, stop = starts[row], stops[row]
        firsts[_U64(found)] = at
        while at + size <= stop:
            if data[_U64(at)] == head and _is_at(data, at, separator):
                ends[_U64(found)] = at
                found += 1
                at += size
                firsts[_U64(found)] = at
            else:
                at += 1
        ends[_U64(found)] = stop
        found += 1
        counts[_U64(row + 1)] = found
    return found


@compiled
def _is_at(data: Array, at: int, text: Array) -> bool:
    for byte in range(1, len(text)):  # noqa: SIM110 - compiled code has no generators
        if data[_U64(at + byte)] != text[_U64(byte)]:
            return False
    return True


@compiled
def pack(data: Array, starts: Positions, stops: Positions, out: Array) -> None:
    """Copy all texts into `out`, one after another."""
    to = 0
    for row in range(len(starts)):
        start = starts[row]
        length = stops[row] - start
        for byte in range(length):
            out[_U64(to + byte)] = data[_U64(start + byte)]
        to += length


@compiled
def _word(data: Array, at: int) -> Any:
    """Return eight bytes as a number; the compiler makes one load of it."""
    found = _U64(0)
    for byte in range(8):
        found |= _U64(data[_U64(at + byte)]) << _U64(8 * byte)
    return found


@compiled
def _half_word(data: Array, at: int) -> Any:
    found = _U64(0)
    for byte in range(4):
        found |= _U64(data[_U64(at + byte)]) << _U64(8 * byte)
    return found


@compiled
def _last_word(data: Array, start: int, stop: int) -> Any:
    """Return the last eight bytes of a text as a number. A shorter text gives a number of its own for its length."""
    size = stop - start
    if size >= 8:
        return _word(data, stop - 8)
    if size >= 4:
        return _half_word(data, start) | _half_word(data, stop - 4) << _U64(32)
    if size == 0:
        return _U64(0)
    middle = _U64(data[_U64(start + (size >> 1))]) << _U64(8)
    return _U64(data[_U64(start)]) | middle | _U64(data[_U64(stop - 1)]) << _U64(16)


@compiled
def _hash(data: Array, start: int, stop: int) -> Any:
    found = _U64(stop - start)
    at = start
    while at + 8 < stop:
        found = (found ^ _word(data, at)) * _FACTOR
        found ^= found >> _SHIFT
        at += 8
    found = (found ^ _last_word(data, start, stop)) * _FACTOR
    found ^= found >> _SHIFT
    found *= _FACTOR
    return found ^ found >> _SHIFT


@compiled
def _are_equal(one: Array, start: int, two: Array, first: int, size: int) -> bool:
    """Compare two texts of the same length."""
    at = 0
    while at + 8 < size:
        if _word(one, start + at) != _word(two, first + at):
            return False
        at += 8
    return _last_word(one, start, start + size) == _last_word(two, first, first + size)


@compiled
def fill_slots(data: Array, ends: Positions, slots: Array) -> None:
    """Write the number of each text into a hash table: a power of two of slots, more than texts, all -1 at first.

    Text n is packed from `ends[n]` to `ends[n + 1]`.
    """
    mask = _U64(len(slots) - 1)
    for row in range(len(ends) - 1):
        slot = _hash(data, ends[row], ends[row + 1]) & mask
        while slots[slot] >= 0:
            slot = (slot + _U64(1)) & mask
        slots[slot] = row


@compiled
def look_up(
    texts: tuple[Array, Positions, Positions],
    keys: tuple[Array, Positions],
    slots: Array,
    out: Positions,
) -> int:
    """Write the number of the key that equals each text, or -1; return how many texts have no key."""
    data, starts, stops = texts
    known, ends = keys
    mask, missing = _U64(len(slots) - 1), 0
    for row in range(len(starts)):
        start, stop = starts[row], stops[row]
        slot = _hash(data, start, stop) & mask
        key = slots[slot]
        while key >= 0:
            first = ends[_U64(key)]
            size = ends[_U64(key) + _U64(1)] - first
            if size == stop - start and _are_equal(data, start, known, first, size):
                break
            slot = (slot + _U64(1)) & mask
            key = slots[slot]
        out[row] = key
        missing += key < 0
    return missing
