"""The results of functions for rows. Those of several maps in a row are computed as one."""

from typing import final

from evenfeed.core.block import Block, Positions, ScratchBlock
from evenfeed.runtime.functions.arithmetic.joined_functions import JoinedFunctions
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.positions.rows import Rows
from evenfeed.runtime.provenance import RowOrigin


def mapped_rows(rows: Rows, function: RowFunction) -> Rows:
    """Return the results of a function for rows. If these are results of others, one call runs them all."""
    if not isinstance(rows, MappedRows):
        return MappedRows(rows, function)
    return rows.followed_by(function)


@final
class MappedRows(Rows):
    """The results of a function for rows. It must be pure: a row may be fetched more than once."""

    def __init__(self, rows: Rows, *functions: RowFunction) -> None:
        self._rows = rows
        self._functions = functions
        self._function = functions[0] if len(functions) == 1 else JoinedFunctions(functions)
        self.size = rows.size

    def followed_by(self, function: RowFunction) -> "MappedRows":
        """Return the results of one more function."""
        return MappedRows(self._rows, *self._functions, function)

    def fetch(self, positions: Positions) -> Block:
        rows = self._rows.fetch(positions)
        return self._function.rows(scratch(rows) if self._rows.fetch_copies else rows, positions)

    def run(self, start: int, count: int) -> Block:
        rows = self._rows.run(start, count)
        return self._function.rows(scratch(rows) if self._rows.run_copies else rows, start)

    def provenance(self, position: int) -> RowOrigin | None:
        return self._rows.provenance(position)


def scratch(block: Block) -> Block:
    """Return a Block that a function may write its results over."""
    return ScratchBlock(block.columns, block.length)
