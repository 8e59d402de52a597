"""The payloads of TFRecord files as a column of text, verified.

Those of one length together, which is as fast as compiled code; where lengths differ, by compiled code.
"""

from typing import Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Positions
from evenfeed.core.conversion import Array
from evenfeed.formats.checksums import Checksums, all_masked, are_right
from evenfeed.formats.compiling import is_worth_it, record_kernels
from evenfeed.formats.cutting import texts
from evenfeed.formats.framing import FOOTER, HEADER_BYTES, pieces
from evenfeed.formats.lengths import grouped
from evenfeed.formats.mapped_files import Held

# Fewer records of one length are cut out and verified one by one as fast.
_FEWEST: Final = 32
# Longer ones take their time either way, and are copied once less one by one.
_LONGEST: Final = 1 << 14
# Of longer ones, the library computes the checksums faster than compiled code that asks for no processor.
_SHORT: Final = 1 << 10


def verified(held: Held, starts: Positions, stops: Positions) -> tuple[Array, int | None]:
    """Return the payloads of records, and which is the first whose checksum is wrong.

    Args:
        held: Bytes of a file.
        starts: Where in them the records begin.
        stops: Where they end, with all that is around their payloads.
    """
    starts, stops = starts + HEADER_BYTES, stops - FOOTER.size
    lengths = stops - starts
    if is_worth_it(len(lengths)) and lengths.mean() <= _SHORT and (lengths != lengths[0]).any():
        first = record_kernels.first_wrong(np.frombuffer(held, np.uint8), starts, stops)
        return texts(held, starts, stops), first if first < len(starts) else None
    said = pieces(held, stops, FOOTER.size).view("<u4")
    column = np.empty(len(starts), dtypes.string)
    groups, rest = grouped(lengths, _FEWEST, _LONGEST)
    wrong = [len(column)]
    for rows in groups:
        found = pieces(held, starts[rows], int(lengths[rows[0]]))
        column[rows] = found
        if not are_right(found.view(np.uint8).reshape(len(rows), -1), said[rows]):
            wrong += _wrong(column, said, rows)
    column[rest] = texts(held, starts[rest], stops[rest])
    wrong += _wrong(column, said, rest)
    first = min(wrong)
    return column, first if first < len(column) else None


def _wrong(column: Array, said: Checksums, rows: Positions) -> list[int]:
    """Return the first row whose checksum is wrong, looked at one by one."""
    return rows[all_masked(column[rows].tolist()) != said[rows]][:1].tolist()
