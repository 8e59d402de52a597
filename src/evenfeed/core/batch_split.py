"""Who gets which rows of a global batch: pure arithmetic on whole numbers, for any number of workers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Share(NamedTuple):
    """The part of one worker among several, which have as many replicas each.

    Replica r of worker w is replica w * replicas + r of all.

    Examples:
        >>> Share(worker=1, workers=2, replicas=2).pieces(16)
        [(4, 8), (12, 16)]
        >>> Share(worker=0, workers=2, replicas=2).counts(7)
        (2, 2, 2, 1)
        >>> Share(worker=1, workers=2, replicas=2).sizes(7)
        (2, 1, 2, 2)
    """

    worker: int = 0
    workers: int = 1
    replicas: int = 1

    @property
    def everyone(self) -> int:
        """How many replicas all workers have together."""
        return self.workers * self.replicas

    def pieces(self, rows: int) -> list[tuple[int, int]]:
        """Return where this worker's pieces of a batch begin and end: it is cut by ceiling, workers take turns."""
        size = -(-rows // self.everyone)
        numbers = range(self.worker, self.everyone, self.workers)
        return [(min(rows, i * size), min(rows, (i + 1) * size)) for i in numbers]

    def own(self, rows: int) -> int:
        """Return how many rows of a batch this worker gets."""
        return sum(stop - start for start, stop in self.pieces(rows))

    def offsets(self, rows: int) -> NDArray[np.int64]:
        """Return which rows of a batch this worker gets."""
        parts = [np.arange(start, stop, dtype=np.int64) for start, stop in self.pieces(rows)]
        return np.concatenate(parts)

    def counts(self, rows: int) -> tuple[int, ...]:
        """Return how many rows of a batch each of all replicas gets."""
        each = (self._replace(worker=worker).pieces(rows) for worker in range(self.workers))
        return tuple(stop - start for pieces in each for start, stop in pieces)

    def divides(self, rows: int) -> bool:
        """Tell whether all replicas get as many rows of a batch, and some."""
        return rows > 0 and rows % self.everyone == 0

    def sizes(self, batch: int) -> tuple[int, ...]:
        """Return the sizes of the pieces that this worker takes in turn where rows flow on from batch to batch.

        Each worker begins at another place of the same sizes, so that every step has one batch in all.
        """
        each, more = divmod(batch, self.everyone)
        sizes = (each + 1,) * more + (each,) * (self.everyone - more)
        first = self.worker * self.replicas
        return sizes[first:] + sizes[:first]


class Flow(NamedTuple):
    """Rows that flow on from batch to batch on each worker: who gets how many at each step.

    Args:
        batch: How many rows a global batch has.
        share: How many workers and replicas there are.
        totals: How many rows each worker has.

    Examples:
        >>> flow = Flow(7, Share(workers=2, replicas=2), (7, 8))
        >>> [flow.counts(step).tolist() for step in range(3)]
        [[2, 2, 2, 1], [2, 1, 2, 2], [0, 0, 1, 0]]
        >>> flow.is_over(3)
        True
    """

    batch: int
    share: Share
    totals: tuple[int, ...]

    def counts(self, step: int) -> NDArray[np.int64]:
        """Return how many rows each of all replicas gets at a step."""
        first = np.arange(self.share.workers, dtype=np.int64)[:, None] * self.share.replicas
        pieces = first + step * self.share.replicas + np.arange(self.share.replicas)
        used = self._rows_before(pieces) - self._rows_before(first)
        sizes = self._rows_before(pieces + 1) - self._rows_before(pieces)
        left = np.array(self.totals, np.int64)[:, None] - used
        return np.clip(left, 0, sizes).ravel()

    @property
    def full_steps(self) -> int:
        """At how many steps from the first on every piece is surely full: nothing need be computed there."""
        return min(self.totals) // self.batch * self.share.workers

    def is_over(self, step: int) -> bool:
        """Tell whether no worker has rows at a step or later."""
        first = np.arange(self.share.workers, dtype=np.int64) * self.share.replicas
        used = self._rows_before(first + step * self.share.replicas) - self._rows_before(first)
        return bool((used >= np.array(self.totals)).all())

    def _rows_before(self, pieces: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many rows the first pieces have together, of the sizes of worker 0."""
        each, more = divmod(self.batch, self.share.everyone)
        rounds, within = np.divmod(pieces, self.share.everyone)
        return rounds * self.batch + within * each + np.minimum(within, more)
