"""Steps made of lanes: each global batch has the same number of rows of every lane, in a fixed order."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batch_split import Share
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.feeding.host_steps import Column, HostSteps, positions
from evenfeed.plan.node import Node
from evenfeed.rewrite.in_lanes import seeds_of_lane
from evenfeed.rewrite.worker_plan import Sharded, own_lanes
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.run import Run, next_pass


@final
class LaneSteps(HostSteps):
    """Joins the rows of one worker's lanes, and splits them over its replicas.

    A lane that has run out gives no more rows. If a lane fails, the error takes the place of the step on all workers, so
    the other lanes lose their rows of that step.

    Args:
        sharded: The lanes.
        share: The worker.
        seeds: The seed numbers of the pass, for each random node.
    """

    def __init__(self, sharded: Sharded, share: Share, seeds: list[list[int]]) -> None:
        numbers = own_lanes(len(sharded.lanes), share)
        self._lanes = [_started(sharded, number, seeds) for number in numbers]
        self._share = share
        self._own = Share(replicas=share.replicas)

    def read(self) -> list[Column]:
        found: list[list[Any]] = []
        errors: list[Exception] = []
        for lane in self._lanes:
            try:
                found.append(next(lane))
            except StopIteration:
                continue
            except Exception as error:  # noqa: BLE001 - raised after all lanes have moved
                errors.append(error)
        for error in errors:
            raise error
        if not found:
            raise StopIteration
        return [self._column(_joined(parts)) for parts in zip(*found, strict=True)]

    def _column(self, rows: Array | None) -> Column:
        if rows is None or self._share.everyone == 1:
            return rows
        even = rows.dtype != dtypes.string and self._own.divides(len(rows))
        if even and self._share.workers == 1:
            return rows
        return [rows[start:stop] for start, stop in self._own.pieces(len(rows))]

    def state(self) -> Any:
        return {"at": [lane.position() for lane in self._lanes], "rows": 0}

    def restore(self, state: Any) -> None:
        for lane, at in zip(self._lanes, positions(state, len(self._lanes)), strict=True):
            lane.set_state(at)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()


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
