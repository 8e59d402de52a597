"""Steps made of lanes: each global batch has the same number of rows of every lane, in a fixed order."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batch_split import HeldRows, Share
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.feeding.host_steps import Column, HostSteps, length_of, next_parts, positions
from evenfeed.plan.node import Node
from evenfeed.rewrite.in_lanes import seeds_of_lane
from evenfeed.rewrite.worker_plan import Sharded, own_lanes
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.run import Run, next_pass


class OwnLanes(HostSteps):
    """Reads some lanes. A lane that has run out gives no more rows.

    If a lane fails, the error takes the place of the step on all workers, so the other lanes lose their rows of that step.

    Args:
        sharded: The lanes.
        numbers: The lanes to read.
        seeds: The seed numbers of the pass, for each random node.
    """

    def __init__(self, sharded: Sharded, numbers: Sequence[int], seeds: list[list[int]]) -> None:
        self._lanes = [_started(sharded, number, seeds) for number in numbers]

    def _rows(self) -> list[list[Any] | None]:
        """Return the rows of each lane, None of one that has run out."""
        found: list[list[Any] | None] = []
        errors: list[Exception] = []
        for lane in self._lanes:
            try:
                found.append(next_parts(lane))
            except Exception as error:  # noqa: BLE001 - raised after all lanes have moved
                errors.append(error)
        for error in errors:
            raise error
        if all(parts is None for parts in found):
            raise StopIteration
        return found

    def iterators(self) -> Sequence[ElementIterator]:
        return self._lanes

    def state(self) -> Any:
        return {"at": [lane.position() for lane in self._lanes], "rows": 0}

    def restore(self, state: Any) -> None:
        for lane, at in zip(self._lanes, positions(state, len(self._lanes)), strict=True):
            lane.set_state(at)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()


@final
class LaneSteps(OwnLanes):
    """Joins the rows of one worker's lanes, and splits them over its replicas.

    Args:
        sharded: The lanes.
        share: The worker.
        seeds: The seed numbers of the pass, for each random node.
    """

    def __init__(self, sharded: Sharded, share: Share, seeds: list[list[int]]) -> None:
        super().__init__(sharded, own_lanes(len(sharded.lanes), share), seeds)
        self._share = share
        self._own = Share(replicas=share.replicas)

    def read(self) -> list[Column]:
        found = [parts for parts in self._rows() if parts is not None]
        return [self._column(_joined(parts)) for parts in zip(*found, strict=True)]

    def _column(self, rows: Array | None) -> Column:
        if rows is None or self._share.everyone == 1:
            return rows
        even = rows.dtype != dtypes.string and self._own.divides(len(rows))
        if even and self._share.workers == 1:
            return rows
        return [rows[start:stop] for start, stop in self._own.pieces(len(rows))]


@final
class HeldLanes(OwnLanes):
    """Reads the lanes whose rows a process holds. The first column marks the rows that are there.

    Each lane has a fixed place in a global batch, so a row that a lane lacks is missing in its place.

    Args:
        sharded: The lanes.
        held: The rows that the process holds.
        size: The number of rows of a global batch.
        seeds: The seed numbers of the pass, for each random node.
    """

    def __init__(self, sharded: Sharded, held: HeldRows, size: int, seeds: list[list[int]]) -> None:
        numbers = lanes_of(held, size, len(sharded.lanes))
        super().__init__(sharded, numbers, seeds)
        self._each = size // len(sharded.lanes)
        places = [np.arange(self._each) + number * self._each for number in numbers]
        # The rows of the lanes and those of the process are in the same order.
        self._chosen = np.isin(np.concatenate([np.arange(0), *places]), held.offsets(size))

    def read(self) -> list[Column]:
        found = self._rows()
        counts = [0 if parts is None else length_of(parts) for parts in found]
        valid = np.concatenate([np.arange(self._each) < count for count in counts])
        first = next(parts for parts in found if parts is not None)
        columns = [self._column(found, index) for index in range(len(first))]
        return [valid[self._chosen], *columns]

    def _column(self, found: Sequence[list[Any] | None], index: int) -> Column:
        parts = [None if parts is None else parts[index] for parts in found]
        one = _joined([part[:1] for part in parts if part is not None])
        if one is None:
            return None
        whole = np.zeros((len(parts), self._each, *one.shape[1:]), one.dtype)
        for lane, part in enumerate(parts):
            if part is not None:
                whole[lane, : len(part)] = part
        return whole.reshape(-1, *one.shape[1:])[self._chosen]


def lanes_of(held: HeldRows, size: int, lanes: int) -> list[int]:
    """Return the lanes that give a process its rows of a batch of `size`, in order."""
    each = size // lanes
    return sorted({int(row) // each for row in held.offsets(size)})


def _started(sharded: Sharded, number: int, seeds: list[list[int]]) -> ElementIterator:
    lane = sharded.lanes[number]
    kept = Run(lane.plan, next_pass).kept_passes()
    return ElementIterator(lane.plan, flat=True, begun=[seeds_of_lane(lane, number, seeds), kept])


def _joined(parts: Sequence[Array | None]) -> Array | None:
    """Return the rows of all lanes."""
    rows = [part for part in parts if part is not None]
    if len(rows) < 2:
        return rows[0] if rows else None
    shapes = [part.shape[1:] for part in rows]
    if len(set(shapes)) > 1:
        raise InvalidArgumentError(
            f"The rows of a global batch must have one shape, but those of its lanes have {shapes}.",
            fix="give all elements one shape; with padded_batch, pass padded_shapes without None.",
        )
    return np.concatenate(rows)


def size_of_lanes(plans: Sequence[Node]) -> int:
    """Return the number of steps until all lanes have run out, INFINITE or UNKNOWN."""
    sizes = [plan.size for plan in plans]
    return min(sizes) if min(sizes) < 0 else max(sizes)
