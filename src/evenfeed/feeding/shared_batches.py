"""Steps of workers that split the same global batches. Their positions suit any number of workers and replicas."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batch_split import RowSplit, Share
from evenfeed.core.conversion import Array
from evenfeed.feeding.alike_steps import alike_steps, are_even, same_lengths
from evenfeed.feeding.host_steps import BatchSteps, Column, HostSteps, SplitSteps, pieces_of
from evenfeed.plan.addressing import why_not_addressable
from evenfeed.plan.node import Node
from evenfeed.rewrite.worker_plan import Sharded, whole_batches
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.fingerprint import fingerprint


@final
class SplitParts(SplitSteps):
    """Splits global batches that are elements of `OwnBatches`, whose one worker gets all rows."""

    def _batch(self) -> list[Any]:
        return self._take()[1:]

    def _columns_of_batch(self, columns: Sequence[Any]) -> list[Any]:
        return list(columns[1:])


@final
class OwnParts(BatchSteps):
    """Splits one worker's rows of each global batch over its replicas.

    Args:
        plan: Its elements are those of `OwnBatches`.
        share: The worker.
        begun: The random state of the pass, which all workers share.
    """

    def __init__(self, plan: Node, share: Share, begun: Any = None) -> None:
        super().__init__(plan, begun)
        self._share = share

    def read(self) -> list[Column]:
        length, *parts = self._take()
        return [self._column(part, int(length)) for part in parts]

    def peek(self, most: int) -> list[Array | None] | None:
        if self._partly is not None:
            return None
        lengths, *columns = same_lengths(alike_steps(self._elements.peek(most).columns))
        if not self._share.divides(int(lengths[0])):
            return None
        return columns if are_even(columns, self._share.replicas) else None

    def advance(self, count: int) -> None:
        self._elements.advance(count)

    def _column(self, part: Array | None, length: int) -> Column:
        if part is None or (part.dtype != dtypes.string and self._share.divides(length)):
            return part
        ends = np.cumsum([stop - start for start, stop in self._share.pieces(length)])
        return pieces_of(np.split(part, ends[:-1]), self._share, self._share.counts(length))


@final
class SharedBatches(HostSteps):
    """Splits the global batches of a plan, of which a worker computes its own rows if possible.

    A position counts batches if rows have positions. Otherwise it is one in the part of the plan that all workers run.
    A single worker may have run the user's plan instead: then each worker continues with that.

    Args:
        plan: The user's plan.
        sharded: The worker's plan.
        share: The worker.
        start: Starts the steps of a plan.
    """

    def __init__(
        self, plan: Node, sharded: Sharded, share: RowSplit, start: Callable[[Sharded], HostSteps]
    ) -> None:
        self._plan = plan
        self._sharded = sharded
        self._share = share
        self._read_by: Node = sharded.plan
        self._start = start
        self._steps = start(sharded)

    def read(self) -> list[Column]:
        return self._steps.read()

    def peek(self, most: int) -> list[Array | None] | None:
        return self._steps.peek(most)

    def advance(self, count: int) -> None:
        self._steps.advance(count)

    def iterators(self) -> Sequence[ElementIterator]:
        return self._steps.iterators()

    def state(self) -> Any:
        return self._steps.state()

    def restore(self, state: Any) -> None:
        wanted = self._way_of(state)
        state = named_for(state, wanted.plan) if self._counts(state) else state
        if wanted.plan is self._read_by:
            self._steps.restore(state)
            return
        steps = self._start(wanted)
        try:
            steps.restore(state)
        except BaseException:
            steps.close()
            raise
        self._steps.close()
        self._steps, self._read_by = steps, wanted.plan

    def _way_of(self, state: Any) -> Sharded:
        """Return how to continue from a position: as now, or as the iterator that saved it."""
        at = _position(state)
        if at is None or self._counts(state) or _is_of(at, self._sharded.plan):
            return self._sharded
        if self._sharded.plan is not self._plan and _is_of(at, self._plan):
            return Sharded(self._plan, self._sharded.policy)
        other = whole_batches(self._plan, self._share)
        return other if _is_of(at, other.plan) else self._sharded

    def _counts(self, state: Any) -> bool:
        """Return True if a position is a number of batches, which means the same in every plan of this dataset."""
        at = _position(state)
        if at is None or not is_number(at.get("at")) or state.get("rows"):
            return False
        own = _position(self._steps.state())
        if own is None or not is_number(own["at"]):  # a damaged file is read sequentially
            return False
        plans = {id(plan): plan for plan in (self._plan, self._sharded.plan)}.values()
        if any(why_not_addressable(plan) is not None for plan in plans):
            return False
        known = [*plans, whole_batches(self._plan, self._share).plan]
        return any(_is_of(at, plan) for plan in known)

    def close(self) -> None:
        self._steps.close()


def split_batches(plan: Node, sharded: Sharded, share: Share, begun: Any = None) -> SharedBatches:
    """Return steps that split a worker's rows over its replicas.

    Args:
        plan: The user's plan.
        sharded: The worker's plan.
        share: The worker.
        begun: The random state of the pass, which all workers share.
    """
    return SharedBatches(plan, sharded, share, partial(_started, share=share, begun=begun))


def _started(sharded: Sharded, *, share: Share, begun: Any) -> HostSteps:
    if not sharded.in_parts:
        return SplitSteps(sharded.plan, share, begun)
    kind = SplitParts if sharded.is_whole else OwnParts
    return kind(sharded.plan, share, begun)


def is_number(at: Any) -> bool:
    """Return True if the position in a plan is a number of elements, also behind an operator that reads ahead."""
    match at:
        case int() | [int(), 0, int()]:
            return True
        case _:
            return False


def _position(state: Any) -> dict[str, Any] | None:
    match state:
        case {"at": [{"version": int()} as at]}:
            return at
        case _:
            return None


def _is_of(at: dict[str, Any], plan: Node) -> bool:
    return at.get("plan") == fingerprint(plan, at["version"])


def named_for(state: Any, plan: Node) -> Any:
    """Return a state as one of another plan of the same dataset."""
    (at,) = state["at"]
    return {**state, "at": [{**at, "plan": fingerprint(plan, at["version"])}]}
