"""TFRecord framing: finding record boundaries, extracting payloads, and verifying their checksums.

A record is its length (8 bytes), the checksum of the length (4 bytes), the payload, and its checksum (4 bytes).
"""

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Origins, Texts, pieces
from evenfeed.formats.bytes.byte_windows import ByteWindow
from evenfeed.formats.bytes.mapped_files import Held
from evenfeed.formats.checksums import Checksums, all_masked, are_right, masked
from evenfeed.formats.lazy_kernels import record_kernels
from evenfeed.formats.reader import grouped

LENGTH: Final = struct.Struct("<Q")
FOOTER: Final = struct.Struct("<I")
HEADER_BYTES: Final = LENGTH.size + FOOTER.size
AROUND: Final = HEADER_BYTES + FOOTER.size

# After this many records of one length, the next ones are expected to have it too.
_FEW: Final = 16
_MOST_ALIKE: Final = 1 << 12


def header_of(length: int) -> bytes:
    """Return the header of a record: its length and the length's checksum."""
    return LENGTH.pack(length) + FOOTER.pack(checksum_of(length))


@lru_cache(maxsize=1 << 16)
def checksum_of(length: int) -> int:
    """Return the masked checksum of a length, as stored in a file."""
    return masked(LENGTH.pack(length))


def walked(held: Held, start: int, stop: int, count: int) -> Positions:
    """Return the start of each record and the end of the last one; only `start` if there is no complete record.

    Args:
        held: Bytes of a file.
        start: Where the first record starts.
        stop: Where the last record must end at the latest.
        count: The most records to find; fewer if the next is incomplete, or its length is damaged.
    """
    if is_worth_it(min(count, _expected(held, start, stop))):
        found = np.empty(min(count, (stop - start) // AROUND) + 1, np.int64)
        return found[: record_kernels.walk(np.frombuffer(held, np.uint8), start, stop, found)]
    places = np.concatenate([[start], *_ends(held, start, stop, count)])
    if len(places) == 1:
        return places
    stored = pieces(held, places[:-1] + LENGTH.size, FOOTER.size).view("<u4")
    wrong = np.flatnonzero(stored != _checksums_of(places[1:] - places[:-1] - AROUND))
    return places[: wrong[0] + 1] if len(wrong) else places


def _expected(held: Held, start: int, stop: int) -> int:
    """Return the number of records if all are as long as the first."""
    if start + AROUND > stop:
        return 0
    return (stop - start) // (LENGTH.unpack_from(held, start)[0] + AROUND)


def _checksums_of(lengths: Positions) -> Array:
    if (lengths == lengths[0]).all():
        return np.array(checksum_of(int(lengths[0])), np.uint32)
    return np.array(list(map(checksum_of, lengths.tolist())), np.uint32)


def _ends(held: Held, at: int, stop: int, count: int) -> Iterator[Positions]:
    """Yield the ends of the next records: a few one by one, then a run of equal length at once."""
    few = _FEW
    while count > 0:
        some = _some(held, at, stop, min(count, few))
        yield np.array(some, np.int64)
        if len(some) < few:
            return
        step, count = some[0] - at, count - few
        at = some[-1]
        if some == list(range(some[0], at + 1, step)):
            alike = _alike(held, at, stop, min(count, _MOST_ALIKE), step)
            yield alike
            at, count = at + step * len(alike), count - len(alike)
        else:
            few = min(2 * few, _MOST_ALIKE)


def _some(held: Held, at: int, stop: int, count: int) -> list[int]:
    ends: list[int] = []
    length_at = LENGTH.unpack_from
    for _ in range(count):
        if at + AROUND > stop:
            break
        at += length_at(held, at)[0] + AROUND
        if at > stop:
            break
        ends.append(at)
    return ends


def _alike(held: Held, at: int, stop: int, count: int, step: int) -> Positions:
    """Return the ends of the next records of `step` bytes each, up to the first of another length."""
    count = min(count, (stop - at) // step)
    others = np.flatnonzero(np.ndarray(count, "<u8", held, at, (step,)) != step - AROUND)
    return at + step * np.arange(1, (int(others[0]) if len(others) else count) + 1)


# Fewer records of equal length are verified just as fast one by one.
_FEWEST: Final = 32
# Longer records take as long either way, and one by one saves a copy.
_LONGEST: Final = 1 << 14
# The library computes the checksums of longer records faster than compiled code.
_SHORT: Final = 1 << 12


def payloads_of(path: str, window: ByteWindow, starts: Positions, stops: Positions) -> Texts:
    """Return the payloads of records. Each is followed by its checksum in the data; its origin is the record.

    Args:
        path: The file.
        window: Its bytes.
        starts: Where the records start in the file.
        stops: Where they end, including their checksums.
    """
    places, ends = starts + HEADER_BYTES, stops - window.first
    if (starts[1:] == stops[:-1]).all():
        data, first = window.held, window.first
        if not isinstance(data, bytes):
            first = int(places[0])
            data = data[first - window.first : int(ends[-1])]
        origins = Origins.in_file(path, np.zeros(1, np.int64), np.array([first - HEADER_BYTES]))
        begin, end = places - first, stops - FOOTER.size - first
        return Texts(np.frombuffer(data, np.uint8), begin, end, origins)
    data, where = _gathered(window.held, places - window.first, ends)
    origins = Origins.in_file(path, where[:-1], starts)
    return Texts(data, where[:-1], where[1:] - FOOTER.size, origins)


def _gathered(held: Held, starts: Positions, stops: Positions) -> tuple[Array, Positions]:
    """Return pieces of bytes concatenated, with the start of each piece and the end of the last."""
    lengths = stops - starts
    where = np.append(np.int64(0), np.cumsum(lengths))
    if lengths[0] <= _LONGEST and (lengths == lengths[0]).all():
        return pieces(held, starts, int(lengths[0])).view(np.uint8), where
    if is_worth_it(len(starts)) and where[-1] <= _LONGEST * len(starts):
        data = np.empty(where[-1], np.uint8)
        record_kernels.gather(np.frombuffer(held, np.uint8), starts, where, data)
        return data, where
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    return np.frombuffer(b"".join([held[start:stop] for start, stop in spans]), np.uint8), where


def first_wrong(payloads: Texts) -> int | None:
    """Return the index of the first payload whose checksum is wrong; None if all are right."""
    starts, stops = payloads.starts, payloads.stops
    lengths = stops - starts
    if is_worth_it(len(lengths)) and lengths.mean() <= _SHORT:
        first = record_kernels.first_wrong(payloads.data, starts, stops)
        return first if first < len(starts) else None
    stored = pieces(payloads.data, stops, FOOTER.size).view("<u4")
    groups, rest = grouped(lengths, _FEWEST, _LONGEST)
    wrong = _wrong(payloads, stored, rest)
    for rows in groups:
        alike = payloads if len(rows) == len(payloads) else payloads.take(rows)
        if not are_right(np.ascontiguousarray(alike.matrix()), stored[rows]):
            wrong += _wrong(payloads, stored, rows)
    return min(wrong, default=None)


def _wrong(payloads: Texts, stored: Checksums, rows: Positions) -> list[int]:
    """Return the first row with a wrong checksum, if any, checking rows one by one."""
    spans = zip(payloads.starts[rows].tolist(), payloads.stops[rows].tolist(), strict=True)
    parts = [payloads.data[start:stop] for start, stop in spans]
    return rows[all_masked(parts) != stored[rows]][:1].tolist()
