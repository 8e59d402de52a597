"""The elements of several datasets, read at once."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from evenfeed.core.block import Block, Positions

# More rows or bytes are not read at once: their datasets are opened one by one.
MOST_ROWS: Final = 1 << 16
_MOST_BYTES: Final = 1 << 24


class NotExpandable(Exception):  # noqa: N818 - never seen: the datasets are opened one by one
    """The datasets of these elements cannot be read at once."""


@final
class TooManyRows(NotExpandable):
    """They have too many elements together, or too large ones."""


@final
@dataclass(frozen=True)
class Expanded:
    """The elements of several datasets, one dataset after the other, and how many each has."""

    rows: Block
    lengths: Positions

    @property
    def starts(self) -> Positions:
        """The index of the first element of each dataset."""
        return np.cumsum(self.lengths) - self.lengths

    def repeated(self, counts: Positions) -> "Expanded":
        """Return the only element of each dataset, as often as `counts` say."""
        check_size(counts, self.rows)
        return Expanded(self.rows.gather(np.repeat(self.starts, counts)), counts)

    def picked(self, starts: Positions, lengths: Positions, step: int = 1) -> Block:
        """Return runs of elements: `lengths` of them from each of `starts` on, every `step`-th."""
        check_size(lengths, self.rows)
        return self.rows.gather(runs(starts, lengths, step))


def runs(starts: Positions, lengths: Positions, step: int = 1) -> Positions:
    """Return the numbers of several runs, one after the other."""
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(starts, lengths) + within * step


def is_small(rows: Block) -> bool:
    """Return True if four times as many rows may be read at once."""
    return 4 * rows.length <= MOST_ROWS and 4 * rows.nbytes <= _MOST_BYTES


def check_size(lengths: Positions, rows: Block | None = None) -> None:
    """Raise TooManyRows if datasets of these lengths have too many elements, or too large ones."""
    total = int(lengths.sum())
    width = 8 if rows is None else rows.bytes_per_row
    if total > MOST_ROWS or total * width > _MOST_BYTES:
        raise TooManyRows
