"""The results of functions for rows. Those of several maps in a row are computed as one."""

from collections.abc import Callable
from typing import final

from evenfeed.core.block import Block, Positions, ScratchBlock
from evenfeed.core.partly_read import PartlyReadBlock, Unread
from evenfeed.runtime.functions.arithmetic.joined_functions import JoinedFunctions
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import FailedRow
from evenfeed.runtime.positions.rows import Rows
from evenfeed.runtime.provenance import RowOrigin


def mapped_rows(rows: Rows, function: RowFunction) -> Rows:
    """Return the results of a function for rows. If these are results of others, one call runs them all."""
    if not isinstance(rows, MappedRows):
        return MappedRows(rows, function)
    return rows.followed_by(function)


@final
class MappedRows(Rows):
    """The results of a function for rows. It must be pure: a row may be fetched more than once.

    Parts of the rows that the function does not use are not read, where files allow it.
    """

    def __init__(self, rows: Rows, *functions: RowFunction) -> None:
        self._rows = rows
        self._functions = functions
        self._function = functions[0] if len(functions) == 1 else JoinedFunctions(functions)
        self._used = _UsedParts(rows, functions[0])
        self.size = rows.size

    def followed_by(self, function: RowFunction) -> "MappedRows":
        """Return the results of one more function."""
        return MappedRows(self._rows, *self._functions, function)

    def fetch(self, positions: Positions) -> Block:
        done = self._of_used_parts(lambda used: used.fetch(positions), positions)
        if done is not None:
            return done
        rows = self._rows.fetch(positions)
        return self._function.rows(scratch(rows) if self._rows.fetch_copies else rows, positions)

    def run(self, start: int, count: int) -> Block:
        done = self._of_used_parts(lambda used: used.run(start, count), start)
        if done is not None:
            return done
        rows = self._rows.run(start, count)
        return self._function.rows(scratch(rows) if self._rows.run_copies else rows, start)

    def _of_used_parts(self, read: Callable[[Rows], Block], first: int | Positions) -> Block | None:
        """Return the results for rows of which only the used parts are read; None to read whole rows."""
        rows = self._used.rows
        if rows is None:
            return None
        try:
            block = read(rows)
            done = self._function.rows(PartlyReadBlock(block.columns, block.length), first)
        except (
            Unread,
            FailedRow,
        ):  # an error shows the whole row, or another part has an error before
            self._used.forget()
            return None
        # A row of another shape may have been traced just now, and the function may use other parts of it.
        return done if self._used.are_known else None

    def provenance(self, position: int) -> RowOrigin | None:
        return (self._used.rows or self._rows).provenance(position)


@final
class _UsedParts:
    """The parts of rows that a function uses.

    Args:
        whole: The rows.
        function: The function.
    """

    def __init__(self, whole: Rows, function: RowFunction) -> None:
        self._whole: Rows | None = whole
        self._function = function
        self._parts: frozenset[int] | None = None
        self._rows: Rows | None = None

    @property
    def rows(self) -> Rows | None:
        """The rows of which only these parts are read; None if whole rows are read."""
        if self._whole is not None and self._parts is None:
            self._parts = _reads(self._function)  # None before the first rows if their shapes vary
            if self._parts is not None:
                self._rows = self._whole.partly(self._parts)
                self._whole = None
        return self._rows

    @property
    def are_known(self) -> bool:
        """Whether the function is still known to use no other parts. If not, whole rows are read from now on."""
        reads = _reads(self._function)
        if reads is None or self._parts is None or not reads <= self._parts:
            self.forget()
        return self._rows is not None

    def forget(self) -> None:
        """Read whole rows from now on."""
        self._whole = self._rows = None


def _reads(function: RowFunction) -> frozenset[int] | None:
    """Return the parts of an element that a function uses, as far as traces show; None if that is unknown."""
    if function.traced is None:
        return None
    compiled, kernels = function.traced
    reads = compiled.reads
    return None if reads is None else reads.union(*(call.parts for call in kernels.calls))


def scratch(block: Block) -> Block:
    """Return a Block that a function may write its results over."""
    return ScratchBlock(block.columns, block.length)
