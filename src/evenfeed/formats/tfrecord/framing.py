"""TFRecord framing: finding record boundaries, extracting payloads, and verifying their checksums.

A record is its length (8 bytes), the checksum of the length (4 bytes), the payload, and its checksum (4 bytes). A
checksum is a CRC32C, masked so that it differs from a CRC stored inside a payload.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.lazy import LazyModule, google_crc32c
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Origins, Texts, pieces
from evenfeed.formats.bytes.byte_windows import ByteWindow
from evenfeed.formats.bytes.mapped_files import Held
from evenfeed.formats.reader import grouped

if TYPE_CHECKING:
    from evenfeed.formats.tfrecord import record_kernels
else:
    record_kernels = LazyModule("evenfeed.formats.tfrecord.record_kernels")

# google_crc32c has no type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

Checksums = NDArray[np.uint32]

LENGTH: Final = struct.Struct("<Q")
FOOTER: Final = struct.Struct("<I")
HEADER_BYTES: Final = LENGTH.size + FOOTER.size
AROUND: Final = HEADER_BYTES + FOOTER.size

# After this many records of one length, the next ones are expected to have the same length.
_FEW: Final = 16
_MOST_ALIKE: Final = 1 << 12


@lru_cache(maxsize=1 << 16)
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
    """Return the payloads of records.

    In the data, the checksum follows each payload. The origin of a payload is its record.

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


_ADDED: Final = 0xA282EAD8
# Records verified by one call: their maps take 32 kB per length.
_TOGETHER: Final = 256


def masked(data: bytes) -> int:
    """Return the masked checksum of `data`, as stored in a file."""
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _ADDED) & 0xFFFFFFFF


def all_masked(parts: Sequence[bytes | Array]) -> Checksums:
    """Return the masked checksum of each part, as stored in a file."""
    crcs = np.fromiter(map(google_crc32c.value, parts), np.uint32, len(parts))
    return (crcs >> np.uint32(15) | crcs << np.uint32(17)) + np.uint32(_ADDED)


def are_right(rows: Array, stored: Checksums) -> bool:
    """Return True if the checksums of all records match the stored ones.

    Records of equal length are verified together. The CRC of concatenated records follows from their own CRCs:
    appending a record's worth of bytes changes a CRC by a map that is linear in its bits. So one call computes the
    CRC of all records, and the stored checksums must combine to the same value. A single damaged record is always
    found. Several can cancel out, once in 2³² times: as often as a damaged record matches its own checksum.

    Args:
        rows: The records, one row of bytes each, at least one byte long.
        stored: The stored checksum of each record.
    """
    rotated = stored - np.uint32(_ADDED)
    crcs = rotated << np.uint32(15) | rotated >> np.uint32(17)
    return all(
        _joined(crcs[start : start + _TOGETHER], rows.shape[1])
        == google_crc32c.value(rows[start : start + _TOGETHER])
        for start in range(0, len(rows), _TOGETHER)
    )


def _joined(crcs: Checksums, length: int) -> int:
    """Return the CRC of the concatenated records."""
    maps = _maps(length)[_TOGETHER - len(crcs) :]
    return int(np.bitwise_xor.reduce(_bits(crcs) * maps, axis=None))


@lru_cache(maxsize=64)
def _maps(length: int) -> Checksums:
    """Return, per row, what each bit of a CRC becomes after the records that follow; none follow the last row."""
    nothing = bytes(length)
    zero = google_crc32c.extend(0, nothing)
    one_more = [google_crc32c.extend(1 << bit, nothing) ^ zero for bit in range(32)]
    step = np.array(one_more, np.uint32)  # the map for as many records as `maps` has rows
    maps = np.uint32(1) << np.arange(32, dtype=np.uint32)[None]
    while len(maps) < _TOGETHER:
        maps = np.concatenate([_mapped(maps, step), maps])
        step = _mapped(step, step)
    return maps


def _mapped(values: Checksums, by: Checksums) -> Checksums:
    return np.bitwise_xor.reduce(_bits(values) * by, axis=-1)


def _bits(values: Checksums) -> Array:
    """Return the bits of each number along a new last axis, lowest first."""
    flat = np.ascontiguousarray(values, "<u4").view(np.uint8)
    return np.unpackbits(flat, bitorder="little").reshape(*values.shape, 32)
