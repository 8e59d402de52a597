"""The payloads of TFRecord files as a column of text, and their checksums.

What is handed on is no part of a mapped file, and is verified: others may write to such a file. Checksums are verified by
compiled code; where there is none, those of records of one length together, by a call of C code.
"""

from typing import Final

import numpy as np

from evenfeed.core.compiling import is_worth_it
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.cutting import pieces
from evenfeed.core.texts import Origins, Texts
from evenfeed.formats.byte_windows import ByteWindow
from evenfeed.formats.checksums import Checksums, all_masked, are_right
from evenfeed.formats.framing import FOOTER, HEADER_BYTES
from evenfeed.formats.kernel_doors import record_kernels
from evenfeed.formats.lengths import grouped
from evenfeed.formats.mapped_files import Held

# Fewer records of one length are verified one by one as fast.
_FEWEST: Final = 32
# Longer ones take their time either way, and are copied once less one by one.
_LONGEST: Final = 1 << 14
# Of longer ones, the library computes the checksums faster than compiled code.
_SHORT: Final = 1 << 12


def payloads_of(path: str, window: ByteWindow, starts: Positions, stops: Positions) -> Texts:
    """Return the payloads of records, behind each of which its checksum is left; their origins are the records.

    Args:
        path: The file.
        window: Its bytes.
        starts: Where in it the records begin.
        stops: Where they end, with all that is around their payloads.
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
    """Return pieces of bytes one behind the other, and where each begins and the last one ends."""
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
    """Return which is the first payload whose checksum is not the one behind it."""
    starts, stops = payloads.starts, payloads.stops
    lengths = stops - starts
    if is_worth_it(len(lengths)) and lengths.mean() <= _SHORT:
        first = record_kernels.first_wrong(payloads.data, starts, stops)
        return first if first < len(starts) else None
    said = pieces(payloads.data, stops, FOOTER.size).view("<u4")
    groups, rest = grouped(lengths, _FEWEST, _LONGEST)
    wrong = _wrong(payloads, said, rest)
    for rows in groups:
        alike = payloads if len(rows) == len(payloads) else payloads.take(rows)
        if not are_right(np.ascontiguousarray(alike.matrix()), said[rows]):
            wrong += _wrong(payloads, said, rows)
    return min(wrong, default=None)


def _wrong(payloads: Texts, said: Checksums, rows: Positions) -> list[int]:
    """Return the first row whose checksum is wrong, looked at one by one."""
    spans = zip(payloads.starts[rows].tolist(), payloads.stops[rows].tolist(), strict=True)
    parts = [payloads.data[start:stop] for start, stop in spans]
    return rows[all_masked(parts) != said[rows]][:1].tolist()
