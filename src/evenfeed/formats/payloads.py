"""The payloads of TFRecord files as a column of text, verified: those of one length at a time."""

from typing import Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Positions
from evenfeed.core.conversion import Array
from evenfeed.formats.checksums import Checksums, all_masked, are_right
from evenfeed.formats.chunks import bytes_column
from evenfeed.formats.framing import FOOTER, HEADER_BYTES, pieces
from evenfeed.formats.lengths import grouped
from evenfeed.formats.mapped_files import Held

# Fewer records of one length are cut out and verified one by one as fast.
_FEWEST: Final = 32
# Longer ones take their time either way, and are copied once less one by one.
_LONGEST: Final = 1 << 14


def verified(held: Held, starts: Positions, stops: Positions) -> tuple[Array, int | None]:
    """Return the payloads of records, and which is the first whose checksum is wrong.

    Args:
        held: Bytes of a file.
        starts: Where in them the records begin.
        stops: Where they end, with all that is around their payloads.
    """
    starts, stops = starts + HEADER_BYTES, stops - FOOTER.size
    said = pieces(held, stops, FOOTER.size).view("<u4")
    column = np.empty(len(starts), dtypes.string)
    groups, rest = grouped(stops - starts, _FEWEST, _LONGEST)
    wrong = [len(column)]
    for rows in groups:
        found = pieces(held, starts[rows], int(stops[rows[0]] - starts[rows[0]]))
        column[rows] = found
        if not are_right(found.view(np.uint8).reshape(len(rows), -1), said[rows]):
            wrong += _wrong(column, said, rows)
    column[rest] = bytes_column(
        [held[a:b] for a, b in zip(starts[rest].tolist(), stops[rest].tolist(), strict=True)]
    )
    wrong += _wrong(column, said, rest)
    first = min(wrong)
    return column, first if first < len(column) else None


def _wrong(column: Array, said: Checksums, rows: Positions) -> list[int]:
    """Return the first row whose checksum is wrong, looked at one by one."""
    return rows[all_masked(column[rows].tolist()) != said[rows]][:1].tolist()
