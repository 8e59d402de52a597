"""Splits the rows of a global batch among workers and replicas: pure integer arithmetic."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from evenfeed.core.conversion import Array


class RowSplit(Protocol):
    """Says which rows of each global batch a worker reads."""

    @property
    def workers(self) -> int:
        """The number of workers."""
        ...

    @property
    def replicas(self) -> int:
        """The number of parts into which a worker splits its rows."""
        ...

    def own(self, rows: int) -> int:
        """Return the number of rows of a batch that this worker reads."""
        ...

    def offsets(self, rows: int) -> Array:
        """Return the indices of the rows of a batch that this worker reads."""
        ...

    def gives_all_some(self, rows: int) -> bool:
        """Return True if each worker reads rows of a batch."""
        ...


def _rows_in(pieces: Sequence[tuple[int, int]]) -> Array:
    return np.concatenate([np.arange(start, stop, dtype=np.int64) for start, stop in pieces])


class Share(NamedTuple):
    """One worker's share of each global batch. All workers have the same number of replicas.

    Replica r of worker w has the global index w * replicas + r.

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
        """The number of replicas of all workers together."""
        return self.workers * self.replicas

    def pieces(self, rows: int) -> list[tuple[int, int]]:
        """Return this worker's pieces of a batch, one per replica, as (start, stop) rows.

        A batch is cut into one piece per replica, with sizes rounded up. Workers take the pieces in turn.
        """
        size = -(-rows // self.everyone)
        numbers = range(self.worker, self.everyone, self.workers)
        return [(min(rows, i * size), min(rows, (i + 1) * size)) for i in numbers]

    def own(self, rows: int) -> int:
        """Return the number of rows of a batch that this worker gets."""
        return sum(stop - start for start, stop in self.pieces(rows))

    def offsets(self, rows: int) -> Array:
        """Return the indices of the rows of a batch that this worker gets."""
        return _rows_in(self.pieces(rows))

    def gives_all_some(self, rows: int) -> bool:
        """Return True if each worker gets rows of a batch."""
        # The first pieces of the workers come in order, so if the last worker gets rows, all workers do.
        return self._replace(worker=self.workers - 1).own(rows) > 0

    def counts(self, rows: int) -> tuple[int, ...]:
        """Return the number of rows of a batch for each replica of all workers."""
        each = (self._replace(worker=worker).pieces(rows) for worker in range(self.workers))
        return tuple(stop - start for pieces in each for start, stop in pieces)

    def divides(self, rows: int) -> bool:
        """Return True if all replicas get the same number of rows of a batch, at least one each."""
        return rows > 0 and rows % self.everyone == 0

    def sizes(self, batch: int) -> tuple[int, ...]:
        """Return the sizes of the pieces into which this worker cuts its rows, over and over.

        All workers use the same sequence of sizes, but each starts at another place in it. So the pieces of one step
        add up to one batch.
        """
        each, more = divmod(batch, self.everyone)
        sizes = (each + 1,) * more + (each,) * (self.everyone - more)
        first = self.worker * self.replicas
        return sizes[first:] + sizes[:first]


class HeldRows(NamedTuple):
    """The rows of each global batch that one process reads: those that its devices hold.

    A batch has equal shards, in the order of its rows. Several processes may hold the same shard.

    Args:
        worker: The index of the process.
        held: The shards of each process, in order.
        shards: The number of shards.
        length: The number of rows of each batch after padding; None if batches are not padded.

    Examples:
        >>> held = HeldRows(1, ((0, 1), (1, 3)), shards=4)
        >>> held.pieces(8)
        [(2, 4), (6, 8)]
        >>> held._replace(length=8).pieces(7)
        [(2, 4), (6, 7)]
    """

    worker: int
    held: tuple[tuple[int, ...], ...]
    shards: int
    length: int | None = None

    @property
    def workers(self) -> int:
        """The number of processes."""
        return len(self.held)

    @property
    def replicas(self) -> int:
        """A process keeps its rows together."""
        return 1

    @property
    def own_shards(self) -> tuple[int, ...]:
        """The shards that this process holds."""
        return self.held[self.worker]

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The processes that hold the same rows, as indices. The groups are in the order of their rows."""
        by_shards: dict[tuple[int, ...], list[int]] = {}
        for worker, shards in enumerate(self.held):
            by_shards.setdefault(shards, []).append(worker)
        return [tuple(by_shards[shards]) for shards in sorted(by_shards)]

    def each(self, rows: int) -> int:
        """Return the number of rows of each shard of a batch. The last shards may have fewer, if it is not padded."""
        return -(-(rows if self.length is None else self.length) // self.shards)

    def pieces(self, rows: int) -> list[tuple[int, int]]:
        """Return the rows of a batch in each shard of this process, as (start, stop)."""
        size = self.each(rows)
        return [(min(rows, k * size), min(rows, (k + 1) * size)) for k in self.own_shards]

    def own(self, rows: int) -> int:
        """Return the number of rows of a batch that this process reads."""
        return sum(stop - start for start, stop in self.pieces(rows))

    def offsets(self, rows: int) -> Array:
        """Return the indices of the rows of a batch that this process reads."""
        return _rows_in(self.pieces(rows))

    def gives_all_some(self, rows: int) -> bool:
        """Return True if each process reads rows of a batch."""
        return all(self._replace(worker=w).own(rows) > 0 for w in range(self.workers))


class Flow(NamedTuple):
    """How many rows each replica gets at each step, if each worker cuts its own rows into pieces.

    Args:
        batch: The number of rows of a global batch.
        share: The number of workers and replicas.
        totals: The number of rows of each worker.

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

    def counts(self, step: int) -> Array:
        """Return the number of rows for each replica of all workers at a step."""
        first = np.arange(self.share.workers, dtype=np.int64)[:, None] * self.share.replicas
        pieces = first + step * self.share.replicas + np.arange(self.share.replicas)
        used = self._rows_before(pieces) - self._rows_before(first)
        sizes = self._rows_before(pieces + 1) - self._rows_before(pieces)
        left = np.array(self.totals, np.int64)[:, None] - used
        return np.clip(left, 0, sizes).ravel()

    @property
    def full_steps(self) -> int:
        """A number of first steps that give every replica a full piece, so that `counts` need not be computed."""
        return min(self.totals) // self.batch * self.share.workers

    def is_over(self, step: int) -> bool:
        """Return True if no worker has rows left at a step."""
        first = np.arange(self.share.workers, dtype=np.int64) * self.share.replicas
        used = self._rows_before(first + step * self.share.replicas) - self._rows_before(first)
        return bool((used >= np.array(self.totals)).all())

    def _rows_before(self, pieces: Array) -> Array:
        """Return the number of rows in the first `pieces` pieces, in the order of worker 0."""
        each, more = divmod(self.batch, self.share.everyone)
        rounds, within = np.divmod(pieces, self.share.everyone)
        return rounds * self.batch + within * each + np.minimum(within, more)
