"""Reads one worker's data for its replicas, in sync with the other workers. It works on the host only."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from evenfeed.core.batch_split import Flow, Share
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.feeding.agreed_steps import AgreedSteps
from evenfeed.feeding.cluster_state import FROM_FUNCTION, ClusterState
from evenfeed.feeding.conversation import Topic
from evenfeed.feeding.flowing_batches import FlowingBatches
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.host_steps import (
    CountedSteps,
    CutInTurn,
    HostSteps,
    SplitSteps,
    is_static,
)
from evenfeed.feeding.lane_steps import LaneSteps
from evenfeed.feeding.piece_steps import TakePieces
from evenfeed.feeding.shared_batches import split_batches
from evenfeed.plan.addressing import why_not_addressable
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.rewrite.worker_plan import lanes_of_workers, sharded
from evenfeed.runtime.run import Run

_ENDLESS: Final = 1 << 62  # more rows than any worker reads


@final
@dataclass(frozen=True)
class WorkerInput:
    """A worker and its connection to the others.

    Attributes:
        share: The index of the worker and the number of its replicas.
        topic: Exchanges messages with the others, or None for a single worker.
    """

    share: Share
    topic: Topic | None = None


def alone(replicas: int) -> WorkerInput:
    """Return a single worker with all replicas."""
    return WorkerInput(Share(replicas=replicas))


@final
class BatchReading:
    """Reads one worker's part of the global batches of a dataset.

    Args:
        plan: The user's plan, the same on all workers.
        worker: The worker.

    Attributes:
        plan: The user's plan.
        share: The worker's share of the replicas.
        sharded: The worker's plan.
        sizes: The sizes of the worker's pieces, in turn, if rows flow on from batch to batch. None if every batch
            is split separately.
        saving: Makes one state of the positions of all workers.
    """

    def __init__(self, plan: Node, worker: WorkerInput) -> None:
        self.plan = plan
        self.share = worker.share
        self._worker = worker
        self.sharded = sharded(plan, worker.share)
        self._shares_rows = self.sharded.policy == AutoShardPolicy.DATA
        self.sizes = self._sizes()
        self.saving = ClusterState(
            self.sharded.policy.name,
            self.share,
            _topic_of_states(worker),
            is_known=self.has_positions,
            lanes=lanes_of_workers(len(self.sharded.lanes), self.share),
        )

    def _sizes(self) -> tuple[int, ...] | None:
        if self._shares_rows or self.share.everyone == 1 or self.sharded.lanes:
            return None
        size = global_batch_size(self.plan)
        return None if size is None else self.share.sizes(size)

    @property
    def reads_runs(self) -> bool:
        """Whether several steps may be read at once."""
        if self.sharded.lanes:
            return self._worker.topic is not None
        return self.share.workers == 1 or not self._shares_rows or self.has_positions

    @property
    def has_positions(self) -> bool:
        """Whether the rows of the worker's plan have positions."""
        return why_not_addressable(self.sharded.plan) is None

    def steps(self) -> HostSteps:
        """Return the steps of a new iteration."""
        if self.sharded.lanes:
            return CountedSteps(self._lane_steps(self._worker.topic))
        if self._worker.topic is None:
            return self._own_steps(self.sharded.plan)
        if self._shares_rows:
            begun = run_of_chief(self.sharded.plan, self._worker.topic)
            return CountedSteps(split_batches(self.plan, self.sharded, self.share, begun))
        return CountedSteps(self._agreed_steps(self._worker.topic))

    def whole_steps(self) -> HostSteps:
        """Return steps for padding. On a single worker, each step is one batch, whatever the policy."""
        if self.share.workers == 1 and not self._shares_rows and not self.sharded.lanes:
            return SplitSteps(self.sharded.plan, self.share)
        return self.steps()

    def _own_steps(self, plan: Node) -> HostSteps:
        if self._shares_rows:
            return split_batches(self.plan, self.sharded, self.share)
        if self.share.everyone == 1:
            return SplitSteps(plan, self.share)
        if self.sizes is not None:
            return FlowingBatches(plan, self.sizes, self.share.replicas)
        return (
            SplitSteps(plan, self.share) if self.share.workers == 1 else CutInTurn(plan, self.share)
        )

    def _lane_steps(self, topic: Topic | None) -> HostSteps:
        steps = LaneSteps(self.sharded, self.share, seeds_of_pass(self.plan, topic))
        if topic is None:
            return steps
        return AgreedSteps(steps, self.plan.element_spec, self.share, talk=topic.next_pass)

    def _agreed_steps(self, topic: Topic) -> HostSteps:
        """Return steps that the workers agree on, because each reads different data."""
        plan, batch = self.sharded.plan, global_batch_size(self.plan)
        rows = plan.row_count if batch is not None and _is_static_below(plan) else UNKNOWN
        flow = _flow(topic, self.share, batch or 0, rows)
        steps = self._own_steps(plan)
        skips = self.sizes is not None
        spec, talk = plan.element_spec, topic.next_pass
        return AgreedSteps(steps, spec, self.share, talk=talk, flow=flow, skips=skips)


@final
class ElementReading:
    """Reads one element per step for each replica of one worker.

    Args:
        plans: One plan for the worker, or one for each of its replicas.
        worker: The worker.
        fills: Whether some replicas may get no rows in a step.

    Attributes:
        plans: The plans.
        share: The worker's share of the replicas.
        saving: Makes one state of the positions of all workers.
    """

    def __init__(self, plans: Sequence[Node], worker: WorkerInput, *, fills: bool = True) -> None:
        self.plans = plans
        self.share = worker.share
        self.saving = ClusterState(FROM_FUNCTION, worker.share, _topic_of_states(worker))
        self._topic = worker.topic
        self._fills = fills

    def steps(self) -> HostSteps:
        """Return the steps of a new iteration."""
        plans, share = self.plans, self.share
        steps = TakePieces(plans, share.replicas, fills=self._fills, others=share.workers > 1)
        if self._topic is None:
            return steps
        rows = _rows_of_each(plans[0])
        total = plans[0].size * rows if rows and plans[0].size >= 0 else plans[0].size
        known = rows > 0 and len(plans) == 1
        flow = _flow(self._topic, share, rows * share.everyone, total if known else UNKNOWN)
        return CountedSteps(
            AgreedSteps(steps, plans[0].element_spec, share, talk=self._topic.next_pass, flow=flow)
        )


def _topic_of_states(worker: WorkerInput) -> Topic | None:
    return None if worker.topic is None else worker.topic.beside("state")


def _flow(topic: Topic, share: Share, batch: int, rows: int) -> Flow | None:
    """Return the number of rows per replica at each step, or None unless all workers know their totals.

    This takes one message from each worker. An infinite dataset counts as one with very many rows: workers
    with finite datasets continue without rows.
    """
    received = [json.loads(text) for text in topic.ask(json.dumps([batch, rows]))]
    batches, totals = zip(*received, strict=True)
    if batch == 0 or UNKNOWN in totals or len(set(batches)) > 1:
        return None
    return Flow(batch, share, tuple(_ENDLESS if total == INFINITE else total for total in totals))


def _rows_of_each(plan: Node) -> int:
    """Return the number of rows of every element, or 0 if it varies, is unknown, or there are no rows."""
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    if not is_static(plan):
        return 0
    lengths = {spec.shape[0] if spec.shape.rank else 0 for spec in specs}
    return lengths.pop() or 0 if len(lengths) == 1 else 0


def _is_static_below(plan: Node) -> bool:
    """Return True if the rows of all batches have a known shape."""
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    return all(spec.shape.rank is not None and spec.shape[1:].is_fully_defined() for spec in specs)


def seeds_of_pass(plan: Node, topic: Topic | None) -> list[list[int]]:
    """Return the seed numbers of a new iteration, for each random node, the same on all workers."""
    if topic is None:
        return Run(plan).state()[0]
    begun = run_of_chief(plan, topic)
    return [] if begun is None else begun[0]


def run_of_chief(plan: Node, topic: Topic) -> Any:
    """Return the chief's random state for a new iteration, so that all workers use the same order.

    It includes epoch counts and the state of caches, because a single worker may have read the dataset
    before. None if nothing is random.
    """
    own = Run(plan).state()
    if not own[0]:
        return None
    received = [json.loads(text) for text in topic.ask(json.dumps(own))]
    counts = [len(seeds) for seeds, _ in received]
    if len(set(counts)) > 1:
        raise InvalidArgumentError(
            f"The workers' datasets differ: they have {counts} random transformations.",
            fix="run the same program on all workers.",
        )
    return received[0]
