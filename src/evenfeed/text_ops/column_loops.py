"""Compiled loops over texts in a buffer: regular expressions, numbers and hashes. Importing this module imports Numba."""

from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false

_U64 = np.uint64
_NOT_ASCII: Final = 0x80
# A search that starts again at each byte may read a text many times. RE2 is faster at such texts.
_MOST_STEPS, _FREE_STEPS = 8, 256

_ZERO, _NINE, _PLUS, _MINUS, _POINT, _E, _LOWER_CASE = 48, 57, 43, 45, 46, 101, 32
# Numbers of these sizes are exact in float64, and so is one multiplication or division of two of them.
_EXACT: Final = 1 << 53
_MOST_DIGITS: Final = 18
_POWERS: Final = np.array([10.0**power for power in range(23)])
_LOST_BITS, _HALFWAY = 0x1FFFFFFF, 0x10000000

_K0, _K2 = np.uint64(0xC3A5C85C97CB3127), np.uint64(0x9AE16A3B2F90404F)


@compiled
def _searched(
    where: tuple[Array, int, int], steps: Array, state: int, accepting: int
) -> tuple[int, int]:
    """Return the end of the match that state leads to, and where the search ended.

    The end is -1 if there is no match, and -2 if there is a byte that is not ASCII.
    """
    data, at, stop = where
    end = -1
    while state:
        if state >= accepting:
            end = at
        if at == stop:
            break
        byte = data[_U64(at)]
        if byte >= _NOT_ASCII:
            return -2, at
        state = steps[_U64(state), _U64(byte)]
        at += 1
    return end, at


@compiled
def replace(
    texts: tuple[Array, Positions, Positions],
    automaton: tuple[Array, int, int],
    rewrite: Array,
    most: int,
    out: tuple[Array, Positions, Positions],
) -> int:
    """Write each text with up to `most` matches replaced, and where it ends; return the length of all.

    A text that RE2 must search, because it is not ASCII or takes too many steps, is left out and marked by a start
    of -1.
    """
    data, starts, stops = texts
    steps, begin, accepting = automaton
    written, firsts, ends = out
    entry = steps[_U64(begin)]
    to = 0
    for row in range(len(starts)):
        at, stop = starts[row], stops[row]
        firsts[_U64(row)] = first = to
        left, budget = most, _MOST_STEPS * (stop - at) + _FREE_STEPS
        while at < stop:
            byte = data[_U64(at)]
            end = -2 if byte >= _NOT_ASCII or budget < 0 else -1
            if end == -1 and left and entry[_U64(byte)]:
                end, ahead = _searched((data, at + 1, stop), steps, entry[_U64(byte)], accepting)
                budget -= ahead - at
            if end == -1:
                written[_U64(to)] = byte
                to += 1
                at += 1
            elif end >= 0:
                for place in range(len(rewrite)):
                    written[_U64(to + place)] = rewrite[_U64(place)]
                to += len(rewrite)
                left -= 1
                at = end
            else:
                firsts[_U64(row)], to = -1, first
                break
        ends[_U64(row)] = to
    return to


@compiled
def match(
    texts: tuple[Array, Positions, Positions], automaton: tuple[Array, int, int], out: Array
) -> int:
    """Write 1 for each text that the automaton accepts, else 0; 2 if the text is not ASCII. Return the number of these."""
    data, starts, stops = texts
    steps, begin, accepting = automaton
    others = 0
    for row in range(len(starts)):
        state, found = begin, 0
        for at in range(starts[row], stops[row]):
            byte = data[_U64(at)]
            if byte >= _NOT_ASCII:
                found = 2
                break
            state = steps[_U64(state), _U64(byte)]
            if not state:
                break
        if found == 0 and state >= accepting:
            found = 1
        out[_U64(row)] = found
        others += found == 2
    return others


@compiled
def _is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _NINE


@compiled
def parse_floats(
    texts: tuple[Array, Positions, Positions], out: Array, bits: Positions | None, odd: Positions
) -> int:
    """Write the number that each text spells; return how many texts are left for exact arithmetic, and list them.

    Left are numbers with many digits, other spellings such as nan, and texts that are not numbers. If the results
    become float32, `bits` are those of the results, and those that lie halfway between two float32 are left too.
    """
    data, starts, stops = texts
    left = 0
    for row in range(len(starts)):
        at, stop = starts[row], stops[row]
        sign = data[_U64(at)] if at < stop else 0
        at += sign in (_MINUS, _PLUS)
        number, digits, power, begin = 0, 0, 0, at
        while at < stop and _is_digit(data[_U64(at)]):
            number = number * 10 + (data[_U64(at)] - _ZERO)
            at += 1
        digits = at - begin
        if at < stop and data[_U64(at)] == _POINT:
            at += 1
            begin = at
            while at < stop and _is_digit(data[_U64(at)]):
                number = number * 10 + (data[_U64(at)] - _ZERO)
                at += 1
            power = begin - at
            digits += at - begin
        valid = 0 < digits <= _MOST_DIGITS and number < _EXACT
        if valid and at < stop and data[_U64(at)] | _LOWER_CASE == _E:
            at += 1
            below = at < stop and data[_U64(at)] == _MINUS
            at += at < stop and data[_U64(at)] in (_MINUS, _PLUS)
            begin, exponent = at, 0
            while at < stop and at - begin < 4 and _is_digit(data[_U64(at)]):
                exponent = exponent * 10 + (data[_U64(at)] - _ZERO)
                at += 1
            valid = at > begin
            power += -exponent if below else exponent
        if not valid or at < stop or not -len(_POWERS) < power < len(_POWERS):
            odd[_U64(left)] = row
            left += 1
            continue
        value = float(number)
        value = value * _POWERS[_U64(power)] if power >= 0 else value / _POWERS[_U64(-power)]
        out[_U64(row)] = -value if sign == _MINUS else value
        if bits is not None and bits[_U64(row)] & _LOST_BITS == _HALFWAY:
            odd[_U64(left)] = row
            left += 1
    return left


@compiled
def parse_integers(
    texts: tuple[Array, Positions, Positions], least: int, most: int, out: Array, odd: Positions
) -> int:
    """Write the integer that each text spells; return how many texts are left, and list them.

    Left are integers outside of the limits, with many digits or spaces, and texts that are not integers.
    """
    data, starts, stops = texts
    left = 0
    for row in range(len(starts)):
        at, stop = starts[row], stops[row]
        sign = data[_U64(at)] if at < stop else 0
        at += sign in (_MINUS, _PLUS)
        number, begin = 0, at
        while at < stop and _is_digit(data[_U64(at)]):
            number = number * 10 + (data[_U64(at)] - _ZERO)
            at += 1
        number = -number if sign == _MINUS else number
        # Texts for unsigned dtypes have no minus, not even that of -0.
        fits = (least < 0 or sign != _MINUS) and least <= number <= most
        if at < stop or not 0 < at - begin <= _MOST_DIGITS or not fits:
            odd[_U64(left)] = row
            left += 1
        else:
            out[_U64(row)] = number
    return left


@compiled
def _word(data: Array, at: int, size: int) -> Any:
    found = _U64(0)
    for byte in range(size):
        found |= _U64(data[_U64(at + byte)]) << _U64(8 * byte)
    return found


@compiled
def _mixed(word: Any) -> Any:
    return word ^ (word >> _U64(47))


@compiled
def _turned(word: Any, bits: int) -> Any:
    return (word >> _U64(bits)) | (word << _U64(64 - bits))


@compiled
def _joint(u: Any, v: Any, factor: Any) -> Any:
    return _mixed((v ^ _mixed((u ^ v) * factor)) * factor) * factor


@compiled
def short_fingerprints(
    data: Array, starts: Positions, stops: Positions, out: Array, longer: Positions
) -> int:
    """Write FarmHash's fingerprint of each text of up to 16 bytes; list the others and return their number."""
    left = 0
    for row in range(len(starts)):
        start = starts[row]
        size = stops[row] - start
        factor = _K2 + _U64(2) * _U64(size)
        if size > 16:
            longer[_U64(left)] = row
            left += 1
        elif size >= 8:
            a, b = _word(data, start, 8) + _K2, _word(data, start + size - 8, 8)
            c, d = _turned(b, 37) * factor + a, (_turned(a, 25) + b) * factor
            out[_U64(row)] = _joint(c, d, factor)
        elif size >= 4:
            a, b = _word(data, start, 4), _word(data, start + size - 4, 4)
            out[_U64(row)] = _joint(_U64(size) + (a << _U64(3)), b, factor)
        elif size > 0:
            a, b = _U64(data[_U64(start)]), _U64(data[_U64(start + (size >> 1))])
            c = _U64(data[_U64(start + size - 1)])
            y, z = a + (b << _U64(8)), _U64(size) + (c << _U64(2))
            out[_U64(row)] = _mixed(y * _K2 ^ z * _K0) * _K2
        else:
            out[_U64(row)] = _K2
    return left
