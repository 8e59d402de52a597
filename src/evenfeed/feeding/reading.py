"""What one worker reads for its replicas, and how the workers stay in step. It knows numbers, and no devices."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from evenfeed.core.batch_split import Flow, Share
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.feeding.agreed_steps import AgreedSteps, Topic
from evenfeed.feeding.global_batch import global_batch_size, nominal_sizes, row_count
from evenfeed.feeding.host_steps import (
    CutInTurn,
    FlowingBatches,
    HostSteps,
    OwnParts,
    SplitSteps,
    TakePieces,
    is_static,
)
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.rewrite.worker_plan import sharded
from evenfeed.runtime.run import Run

_ENDLESS: Final = 1 << 62  # rows that no worker comes to the end of


@final
@dataclass(frozen=True)
class WorkerInput:
    """A worker among others.

    Attributes:
        share: Which one, and how many replicas it has.
        topic: Its way to the others; None where it is alone.
    """

    share: Share
    topic: Topic | None = None


def alone(replicas: int) -> WorkerInput:
    """Return the worker that has all replicas."""
    return WorkerInput(Share(replicas=replicas))


@final
class BatchReading:
    """Reads one worker's part of the global batches of a dataset.

    Args:
        plan: The user's, the same on all workers.
        worker: Who reads.
    """

    def __init__(self, plan: Node, worker: WorkerInput) -> None:
        self.plan = plan
        self.share = worker.share
        self._worker = worker
        self.sharded = sharded(plan, worker.share)
        alone = worker.share.everyone == 1
        self.sizes = None if alone else nominal_sizes(plan, self.sharded.policy, worker.share)

    def steps(self) -> HostSteps:
        """Return the steps of a new pass."""
        shares_rows = self.sharded.policy == AutoShardPolicy.DATA
        if self._worker.topic is None:
            return self._own_steps(self.sharded.plan)
        if shares_rows:
            begun = run_of_chief(self.sharded.plan, self._worker.topic)
            return self._own_steps(self.sharded.plan, begun)
        return self._together(self._worker.topic)

    def whole_steps(self) -> HostSteps:
        """Return steps for one shape to the end: on one worker, each is a batch whatever the policy."""
        if self.share.workers == 1:
            return SplitSteps(self.sharded.plan, self.share)
        return self.steps()

    def _own_steps(self, plan: Node, begun: Any = None) -> HostSteps:
        if self.sharded.in_parts:
            return OwnParts(plan, self.share, begun)
        if self.sharded.policy == AutoShardPolicy.DATA or self.share.everyone == 1:
            return SplitSteps(plan, self.share, begun)
        if self.sizes is not None:
            return FlowingBatches(plan, self.sizes, self.share.replicas)
        return (
            SplitSteps(plan, self.share) if self.share.workers == 1 else CutInTurn(plan, self.share)
        )

    def _together(self, topic: Topic) -> HostSteps:
        """Return steps that are agreed on: workers have data of their own here."""
        plan, batch = self.sharded.plan, global_batch_size(self.plan)
        rows = row_count(plan) if batch is not None and _is_static_below(plan) else UNKNOWN
        flow = _flow(topic, self.share, batch or 0, rows)
        steps = self._own_steps(plan)
        skips = self.sizes is not None
        return AgreedSteps(steps, plan, self.share, talk=topic.next_pass, flow=flow, skips=skips)


@final
class ElementReading:
    """Reads elements for the replicas of one worker, one for each at a step.

    Args:
        plans: One plan of the worker's own, or one for each of its replicas.
        worker: Who reads.
        fills: Whether there are steps in which some replicas get no rows.
    """

    def __init__(self, plans: Sequence[Node], worker: WorkerInput, *, fills: bool = True) -> None:
        self.plans = plans
        self.share = worker.share
        self._topic = worker.topic
        self._fills = fills

    def steps(self) -> HostSteps:
        """Return the steps of a new pass."""
        plans, share = self.plans, self.share
        steps = TakePieces(plans, share.replicas, fills=self._fills, others=share.workers > 1)
        if self._topic is None:
            return steps
        rows = _rows_of_each(plans[0])
        total = plans[0].size * rows if rows and plans[0].size >= 0 else plans[0].size
        known = rows > 0 and len(plans) == 1
        flow = _flow(self._topic, share, rows * share.everyone, total if known else UNKNOWN)
        return AgreedSteps(steps, plans[0], share, talk=self._topic.next_pass, flow=flow)


def _flow(topic: Topic, share: Share, batch: int, rows: int) -> Flow | None:
    """Return who gets how many rows at each step, where all workers know how many they have.

    That takes one message of each. A worker without end beside others is one with very many rows: the
    others go on without any.
    """
    told = [json.loads(text) for text in topic.ask(json.dumps([batch, rows]))]
    batches, totals = zip(*told, strict=True)
    if batch == 0 or UNKNOWN in totals or len(set(batches)) > 1:
        return None
    return Flow(batch, share, tuple(_ENDLESS if total == INFINITE else total for total in totals))


def _rows_of_each(plan: Node) -> int:
    """Return how many rows every element has; 0 where that differs, shapes do, or they have none."""
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    if not is_static(plan):
        return 0
    lengths = {spec.shape[0] if spec.shape.rank else 0 for spec in specs}
    return lengths.pop() or 0 if len(lengths) == 1 else 0


def _is_static_below(plan: Node) -> bool:
    """Tell whether the rows of all batches have one shape."""
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    return all(spec.shape.rank is not None and spec.shape[1:].is_fully_defined() for spec in specs)


def run_of_chief(plan: Node, topic: Topic) -> Any:
    """Return what is random in a new pass of the chief's, for all workers: they share the rows of one order.

    Counts of passes and what caches keep are part of it: one worker alone may have looked at the dataset
    before. None where nothing is random.
    """
    own = Run(plan).state()
    if not own[0]:
        return None
    told = [json.loads(text) for text in topic.ask(json.dumps(own))]
    counts = [len(seeds) for seeds, _ in told]
    if len(set(counts)) > 1:
        raise InvalidArgumentError(
            f"The datasets of the workers differ: they shuffle {counts} times.",
            fix="run the same program on all workers.",
        )
    return told[0]
