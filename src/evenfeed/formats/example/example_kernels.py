"""Compiled loops over serialized examples of any layout: they find the features.

A record is called odd if it has an unusual encoding, is damaged, or does not match the requested features; the caller
parses it another way. Indices are cast to unsigned integers, because Numba checks signed ones for negative values.

Most records differ from the one before only in their values. So the layout of a record is kept, as words of eight bytes
with a mask of the bits that are not values, and the next records of that length are compared with it.
"""

from typing import Final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import compiled

# The tag byte of a length-delimited field, by field number.
_FIRST: Final = 0x0A
_SECOND: Final = 0x12
# The tag byte of each kind of list in a Feature.
_TEXTS: Final = 0x0A
_FLOATS: Final = 0x12
_NUMBERS: Final = 0x1A

# The tag byte of what the records hold: the features of an Example, or the lists of a SequenceExample.
FEATURES: Final = _FIRST
FEATURE_LISTS: Final = _SECOND

# Special values of a place or a count.
MISSING: Final = -1
_ODD: Final = -2
# The requested count of a feature with any number of values.
ANY: Final = -1

# After this many layouts that few records shared, no more are kept.
_TRIALS: Final = 4
_WORD: Final = 8

_U64 = np.uint64

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false


@compiled
def find(  # noqa: PLR0913, PLR0917 - compiled code takes only arrays
    data: Array,
    starts: Positions,
    stops: Positions,
    names: Array,
    name_stops: Positions,
    kinds: Positions,
    counts: Positions,
    places: Array,
    sizes: Array,
    odd: Array,
    table: Array,
    mask: Array,
    words: Array,
    part: int,
) -> None:
    """Write where the values of the requested features, or the steps of lists, start, and which records are odd.

    Args:
        data: The bytes that contain the records.
        starts: Where each record starts.
        stops: Where each record ends.
        names: The concatenated names of the features.
        name_stops: Where each name ends.
        kinds: The tag byte of each feature's list.
        counts: The number of values of each feature, or `ANY`.
        places: Output: for each feature and record, where its values start, or `MISSING`.
        sizes: Output: for each feature and record, the number of its values; 0 if it is missing. Without rows if all counts
            are known.
        odd: Output: whether each record is odd.
        table: Room for the features by the hashes of their names: a power of two, and more than there are features.
        mask: Room for the mask of a record.
        words: Room for the layout of a record: the place, the bits and the mask of each word.
        part: `FEATURES` or `FEATURE_LISTS`: the only field of the records.
    """
    # The record whose layout is kept, the number of its words, and how many layouts may still be tried.
    known, size, trials = -1, 0, _TRIALS if part == FEATURES else 0
    varies = len(sizes) > 0
    _fill_table(names, name_stops, table)
    for row in range(len(stops)):
        start, stop = starts[_U64(row)], stops[_U64(row)]
        odd[_U64(row)] = False
        alike = known >= 0 and stop - start == stops[_U64(known)] - starts[_U64(known)]
        if alike and _is_alike(data, start, words, size):
            trials = min(trials + 1, _TRIALS)
            moved = start - starts[_U64(known)]
            for feature in range(len(kinds)):
                place = places[_U64(feature), _U64(known)]
                places[_U64(feature), _U64(row)] = place if place == MISSING else place + moved
                if varies:
                    sizes[_U64(feature), _U64(row)] = sizes[_U64(feature), _U64(known)]
            continue
        for feature in range(len(kinds)):
            places[_U64(feature), _U64(row)] = MISSING
            if varies:
                sizes[_U64(feature), _U64(row)] = 0
        if start < stop:
            first, last = _field(data, start, stop, part, True)
            good = _found(
                data, first, last, names, name_stops, kinds, counts, places, sizes, table, row, part
            )
            odd[_U64(row)] = not good
            if good and trials and row and _same_length(starts, stops, row):
                known, trials = row, trials - 1
                size = _layout(data, start, stop, mask, words)


@compiled
def _same_length(starts: Positions, stops: Positions, row: int) -> bool:
    """Return True if a record is as long as the one before: records of many lengths need no layouts."""
    before = stops[_U64(row - 1)] - starts[_U64(row - 1)]
    return stops[_U64(row)] - starts[_U64(row)] == before >= _WORD


@compiled
def _is_alike(data: Array, start: int, words: Array, size: int) -> bool:
    different = _U64(0)
    for word in range(size):
        place = start + np.int64(words[_U64(word), 0])
        different |= (_word(data, place) ^ words[_U64(word), 1]) & words[_U64(word), 2]
    return different == 0


@compiled
def _layout(data: Array, start: int, stop: int, mask: Array, words: Array) -> int:
    """Keep the layout of a record that is not odd; return the number of its words."""
    length = stop - start
    for place in range(length):
        mask[_U64(place)] = 0xFF
    at, end = _field(data, start, stop, _FIRST, True)
    while at < end:
        entry, at = _field(data, at, end, _FIRST, False)
        value, last = _field(data, _field(data, entry, at, _FIRST, False)[1], at, _SECOND, True)
        if value < last:
            _mask_values(data, value, last, start, mask)
    size = 0
    for place in range(0, length, _WORD):
        at = min(place, length - _WORD)  # the last word may overlap the one before
        bits = _word(mask, at)
        if bits:
            words[_U64(size), 0] = _U64(at)
            words[_U64(size), 1] = _word(data, start + at)
            words[_U64(size), 2] = bits
            size += 1
    return size


@compiled
def _mask_values(data: Array, at: int, end: int, start: int, mask: Array) -> None:
    """Take the values of a feature out of the mask of a record."""
    kind = data[_U64(at)]
    at, end = _field(data, at, end, kind, True)
    if kind == _TEXTS:
        while at < end:
            first, at = _field(data, at, end, _FIRST, False)
            for place in range(first, at):
                mask[_U64(place - start)] = 0
    elif at < end:
        at, end = _field(data, at, end, _FIRST, True)
        digits = 0
        for place in range(at, end):
            # Whether a varint goes on must be the same. Its tenth byte holds one bit of the number.
            mask[_U64(place - start)] = 0 if kind == _FLOATS else 0x80 if digits < 9 else 0xFE
            digits = digits + 1 if data[_U64(place)] >= 0x80 else 0


@compiled
def _word(data: Array, at: int) -> int:
    """Return eight bytes as a number; the compiler makes one load of it."""
    found = _U64(0)
    for byte in range(_WORD):
        found |= _U64(data[_U64(at + byte)]) << _U64(8 * byte)
    return found


@compiled
def find_texts(
    data: Array, places: Positions, splits: Positions, starts: Positions, stops: Positions
) -> None:
    """Write the start and end of each string; an empty range for records without them."""
    for row in range(len(places)):
        at = places[row]
        for to in range(splits[row], splits[row + 1]):
            start, stop = 0, 0
            if at >= 0:
                start, at = _field(data, at, len(data), _TEXTS, False)
                stop = at
            starts[to] = start
            stops[to] = stop


@compiled
def _found(  # noqa: PLR0913, PLR0917 - compiled code takes only arrays
    data: Array,
    at: int,
    end: int,
    names: Array,
    name_stops: Positions,
    kinds: Positions,
    counts: Positions,
    places: Array,
    sizes: Array,
    table: Array,
    row: int,
    part: int,
) -> bool:
    """Write the places of the requested features of one record; return False if the record is odd."""
    feature = -1
    while 0 <= at < end:
        entry, at = _field(data, at, end, _FIRST, False)
        key, key_stop = _field(data, entry, at, _FIRST, False)
        value, stop = _field(data, key_stop, at, _SECOND, True)
        if value < 0:
            return False
        # Many records have the features in the order in which they are requested.
        feature = _named(data, key, key_stop, names, name_stops, feature + 1, table)
        if part == FEATURES:
            begin, count = _values(data, value, stop)
        else:
            begin, count = value, _count_steps(data, value, stop)
        if min(feature, count) == _ODD:
            return False
        if feature >= 0:
            if places[_U64(feature), _U64(row)] != MISSING:
                return False
            if count != MISSING:
                if part == FEATURES and data[_U64(value)] != kinds[_U64(feature)]:
                    return False
                if counts[_U64(feature)] == ANY:
                    sizes[_U64(feature), _U64(row)] = count
                elif count != counts[_U64(feature)]:
                    return False
                places[_U64(feature), _U64(row)] = begin
    return at >= 0 and at == end


@compiled
def _named(  # noqa: PLR0913, PLR0917 - compiled code takes only arrays
    data: Array, at: int, stop: int, names: Array, name_stops: Positions, guess: int, table: Array
) -> int:
    """Return the feature with this name, trying `guess` first."""
    if guess < len(name_stops) and _is_name(data, at, stop, names, name_stops, guess):
        return guess
    place = _hash(data, at, stop)
    while True:
        place &= _U64(len(table) - 1)
        feature = table[place]
        if feature == MISSING:
            break
        if _is_name(data, at, stop, names, name_stops, feature):
            return feature
        place += _U64(1)
    for place in range(at, stop):
        if data[_U64(place)] >= 0x80:
            return _ODD  # protobuf must check that it is valid UTF-8
    return MISSING


@compiled
def _is_name(  # noqa: PLR0913, PLR0917 - compiled code takes only arrays
    data: Array, at: int, stop: int, names: Array, name_stops: Positions, feature: int
) -> bool:
    start = name_stops[_U64(feature - 1)] if feature else 0
    if name_stops[_U64(feature)] - start != stop - at:
        return False
    same = 0
    while at + same < stop and data[_U64(at + same)] == names[_U64(start + same)]:
        same += 1
    return at + same == stop


@compiled
def _fill_table(names: Array, name_stops: Positions, table: Array) -> None:
    """Put each feature at the hash of its name, or at the next place that is free."""
    for place in range(len(table)):
        table[_U64(place)] = MISSING
    start = 0
    for feature in range(len(name_stops)):
        stop = name_stops[_U64(feature)]
        place = _hash(names, start, stop) & _U64(len(table) - 1)
        while table[place] != MISSING:
            place = (place + _U64(1)) & _U64(len(table) - 1)
        table[place] = feature
        start = stop


@compiled
def _hash(data: Array, at: int, stop: int) -> int:
    """Return a hash of bytes; its low bits are mixed best."""
    found = _U64(stop - at)
    for place in range(at, stop):
        found = (found ^ _U64(data[_U64(place)])) * _U64(0x9E3779B97F4A7C15)
        found ^= found >> _U64(32)
    return found


@compiled
def _values(data: Array, at: int, end: int) -> tuple[int, int]:
    """Return where the values of a feature start, and how many there are."""
    if at == end:
        return MISSING, MISSING
    kind = data[_U64(at)]
    start, stop = _field(data, at, end, kind, True)
    if start < 0 or kind not in (_TEXTS, _FLOATS, _NUMBERS):
        return _ODD, _ODD
    if start == stop:
        return start, 0
    if kind == _TEXTS:
        return start, _count_texts(data, start, stop)
    start, stop = _field(data, start, stop, _FIRST, True)
    if start < 0:
        return _ODD, _ODD
    if kind == _FLOATS:
        return start, _ODD if (stop - start) % 4 else (stop - start) // 4
    return start, _count_numbers(data, start, stop)


@compiled
def find_middles(data: Array, starts: Positions, stops: Positions, middles: Positions) -> None:
    """Write where the feature lists of each SequenceExample start, after its context."""
    for row in range(len(stops)):
        at, stop = starts[_U64(row)], stops[_U64(row)]
        middles[_U64(row)] = at
        if at < stop and data[_U64(at)] == FEATURES:
            middles[_U64(row)] = _field(data, at, stop, FEATURES, False)[1]


@compiled
def find_steps(  # noqa: PLR0913, PLR0917 - compiled code takes only arrays
    data: Array, starts: Positions, stops: Positions, kind: int, places: Array, sizes: Array
) -> bool:
    """Write where the values of each step start, and their number; return False if one is of another kind."""
    for step in range(len(stops)):
        begin, count = _values(data, starts[_U64(step)], stops[_U64(step)])
        if count >= 0 and data[_U64(starts[_U64(step)])] != kind:
            return False
        places[_U64(step)] = begin
        sizes[_U64(step)] = max(count, 0)
    return True


@compiled
def _count_steps(data: Array, at: int, end: int) -> int:
    """Return the number of steps of a feature list; `_ODD` if one is odd."""
    count = 0
    while 0 <= at < end:
        start, at = _field(data, at, end, _FIRST, False)
        if at < 0 or _values(data, start, at)[1] == _ODD:
            return _ODD
        count += 1
    return count if at == end else _ODD


@compiled
def _count_texts(data: Array, at: int, end: int) -> int:
    count = 0
    while 0 <= at < end:
        at = _field(data, at, end, _FIRST, False)[1]
        count += 1
    return count if at == end else _ODD


@compiled
def _count_numbers(data: Array, at: int, end: int) -> int:
    """Return the number of varints; `_ODD` if one has more than 64 bits or is cut off."""
    count, bytes_before = 0, 0
    for place in range(at, end):
        byte = data[_U64(place)]
        if bytes_before == 9 and byte > 1:
            return _ODD
        bytes_before += 1
        if byte < 0x80:
            count += 1
            bytes_before = 0
    return _ODD if bytes_before else count


@compiled
def _field(data: Array, at: int, end: int, tag: int, whole: bool) -> tuple[int, int]:
    """Return the start and end of a field. With `whole`, nothing may follow it."""
    if at < 0 or at >= end or data[_U64(at)] != tag:
        return _ODD, _ODD
    length, shift, start = 0, 0, at + 1
    while start < end and shift < 35:
        byte = np.int64(data[_U64(start)])
        start += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            stop = start + length
            if stop > end or (whole and stop != end):
                break
            return start, stop
    return _ODD, _ODD
