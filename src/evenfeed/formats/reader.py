"""Rows that are equally long, which NumPy works on at once."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated, fetched_apart
from evenfeed.core.errors import DataLossError


def grouped(lengths: Positions, fewest: int, longest: int) -> tuple[list[Positions], Positions]:
    """Return the rows of each length that `fewest` rows or more have, and all other rows.

    Rows without length, or with more than `longest`, are among the others.
    """
    rows = np.arange(len(lengths))
    if len(rows) >= fewest and 0 < lengths[0] <= longest and (lengths == lengths[0]).all():
        return [rows], rows[:0]
    order = np.argsort(lengths, kind="stable")
    starts = np.flatnonzero(np.diff(lengths[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    length = lengths[order[starts]]
    together = (sizes >= fewest) & (length > 0) & (length <= longest)
    groups = [order[i : i + n] for i, n in zip(starts[together], sizes[together], strict=True)]
    return groups, np.sort(order[np.repeat(~together, sizes)])


class Reader(ABC):
    """An open file. What it holds is freed when it is dropped, or by `close`."""

    path: str

    @property
    def goes_on(self) -> bool:
        """Whether, after `read` raised, the rows behind the one at `start` can be read."""
        return False

    @property
    def held(self) -> int:
        """How many bytes of rows it keeps in memory; those of a file that is mapped do not count."""
        return 0

    @abstractmethod
    def read(self, start: int, count: int) -> Block | None:
        """Return rows from `start` on, at least one and at most `count`; None behind the last."""

    def whole(self, start: int, count: int) -> Block:
        """Return all of `count` rows from `start` on."""
        blocks: list[Block] = []
        stop = start + count
        while start < stop:
            block = self.read(start, stop - start)
            if block is None:
                raise DataLossError(
                    f"{self.path} ends at row {start}, but was to have {stop} or more.",
                    fix="make the dataset anew if the file changed.",
                )
            blocks.append(block)
            start += block.length
        return concatenated(blocks)

    def fetch(self, positions: Positions) -> Block:
        """Return the rows at `positions`, in that order; by default one read for each run of neighbours."""
        order = np.argsort(positions, kind="stable")
        sorted_positions = positions[order]
        runs = np.empty_like(positions)
        runs[order] = np.cumsum(np.diff(sorted_positions, prepend=sorted_positions[0]) > 1)
        return fetched_apart(runs, positions, self._run)

    def _run(self, _: int, positions: Positions) -> Block:
        first, last = int(positions.min()), int(positions.max())
        return self.whole(first, last + 1 - first).gather(positions - first)

    def behind(self, row: int) -> int:
        """Return the first row behind those that fail alike, where `row` has failed."""
        return row + 1

    def byte_of(self, row: int) -> int | None:  # noqa: ARG002 - others know
        """Return the byte at which a row begins that was read last; None where that is not known."""
        return None

    def mark(self) -> Any:
        """Return data for JSON with which `seek` finds the rows from here on again; None where it needs none."""
        return None

    def seek(self, mark: Any) -> None:  # noqa: B027 - most find rows by their numbers alone
        """Take up what `mark` returned, before rows behind it are read."""

    def close(self) -> None:  # noqa: B027 - most hold nothing but memory
        """Free what is held, at once."""


@dataclass(frozen=True)
class DataFile(ABC):
    """A file as a plan knows it, before it is opened: small, comparable, sent to other processes as it is."""

    path: str

    # The name of the method or class with which users read such files.
    read_by: ClassVar[str] = "load"
    # Whether a plan knows what is in it, so that another one in its place is noticed.
    checks_itself: ClassVar[bool] = False

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """How many rows it has; None where only reading it tells."""

    def counted(self) -> int | None:
        """Return how many rows it has, if need be by a look into the file; None where rows have no positions.

        None also where the file is damaged so that nobody can tell, or not there: rows that are not counted
        are read one after the other, and then every shard meets the error.
        """
        return self.rows

    @property
    @abstractmethod
    def extent(self) -> tuple[int, int]:
        """Which bytes of the file the rows stand in: the first, and the one behind the last."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A short text that two files share only if they hold the same rows, wherever they are."""

    def named(self, row: int) -> str:
        """Return what a row is called by who says something about it."""
        return f"row {row}"

    @property
    def is_read_again(self) -> bool:
        """Whether a row is found only by reading all before it."""
        return False

    @property
    def identity(self) -> str:
        """A text that other rows never have, also those of a file that was written anew in this place."""
        return self.fingerprint

    @abstractmethod
    def open(self) -> Reader:
        """Open it, or return the reader that others use, where it has no position of its own."""
