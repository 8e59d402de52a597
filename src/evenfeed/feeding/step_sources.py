"""Sources of the steps of a distributed dataset: specs, iteration, and restoring positions.

`CutFeed` splits the global batches of one dataset. `TakeFeed` takes one element for each replica.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.batch_split import Share
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import INFINITE, UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.feeding.ahead.prefetch import StepsAhead
from evenfeed.feeding.ahead.steps_together import most_together
from evenfeed.feeding.cluster_state import ClusterState, invalid_state
from evenfeed.feeding.composite_rows import CompositeRowsSpec
from evenfeed.feeding.consistency import Facts, check_same, cut_facts, taken_facts
from evenfeed.feeding.explain_distribution import cut_text, taken_text
from evenfeed.feeding.host_steps import Column, HostSteps, is_static
from evenfeed.feeding.ignored_errors import all_ignored
from evenfeed.feeding.input_options import InputOptions
from evenfeed.feeding.lane_steps import size_of_lanes
from evenfeed.feeding.padding import PadSteps, padded_rows
from evenfeed.feeding.placing import Placing
from evenfeed.feeding.reading import BatchReading, ElementReading, WorkerInput
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplicaSpec
from evenfeed.runtime.explain import Explanation
from evenfeed.runtime.functions.called_functions import ExternalState
from evenfeed.runtime.live_state import Ignored


@final
@dataclass(frozen=True)
class StepTarget:
    """The replicas that get the steps, and whether steps go to the devices, where x64 may be disabled."""

    replicas: Replicas
    share: Share
    fetch: bool = True

    def dtype(self, given: DType) -> DType:
        """Return the dtype of values of dtype `given` after they arrive."""
        return self.replicas.arriving(given) if self.fetch else given


def cut_spec(plan: Node, target: StepTarget, *, short: bool = False) -> Any:
    """Return the spec of a step if each global batch is split over the replicas. `short` means any may be short."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    return _for_all(plan, [_cut(part, target) for part in parts], target, short=short)


def taken_spec(plan: Node, target: StepTarget) -> Any:
    """Return the spec of a step if each replica takes whole elements."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    short = target.share.everyone > 1 and not is_static(plan)  # replicas may get no element
    return _for_all(plan, [arriving(part, target.dtype) for part in parts], target, short=short)


def padded_spec(plan: Node, target: StepTarget, rows: int) -> Any:
    """Return the spec of a step with `rows` rows per replica and a `valid` mask."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    for part in parts:
        if isinstance(part, CompositeRowsSpec):
            raise TypeError(
                described(
                    f"pad_partial_batches can only pad tensors, but the elements have a component {part}.",
                    fix="make it dense in a map: x.to_tensor(), or sparse.to_dense(x).",
                )
            )
    pieces = [with_rows(_cut(part, target), rows) for part in parts]
    valid = _several(TensorSpec([rows], dtypes.bool), target)
    return pack(plan.element_spec, [_several(p, target) for p in pieces], DATA), valid


def _for_all(plan: Node, pieces: Sequence[TypeSpec], target: StepTarget, *, short: bool) -> Any:
    if plan.size != INFINITE and (target.share.workers > 1 or short):
        # The last step may be short in every component, and a worker may run out of rows before it.
        pieces = [with_rows(piece, None) for piece in pieces]
    return pack(plan.element_spec, [_several(piece, target) for piece in pieces], DATA)


def _several(piece: TypeSpec, target: StepTarget) -> TypeSpec:
    if target.replicas.is_lone:
        return piece
    return PerReplicaSpec(*[piece] * target.share.replicas)


def arriving(spec: TypeSpec, dtype: Callable[[DType], DType]) -> TypeSpec:
    """Return the spec of a component after it arrives, given the dtype that values of a dtype then have.

    Raises:
        TypeError: It cannot be distributed.
    """
    if isinstance(spec, TensorSpec):
        return TensorSpec(spec.shape, dtype(spec.dtype))
    if isinstance(spec, NoneTensorSpec):
        return spec
    if isinstance(spec, CompositeRowsSpec):
        return spec  # it stays on the host
    raise TypeError(
        described(
            f"Only tensors can be distributed, but the elements have a component {spec}.",
            fix="turn it into tensors first, in a map: x.get_value() for an Optional. Use flat_map for datasets.",
        )
    )


def _cut(spec: TypeSpec, target: StepTarget) -> TypeSpec:
    found, count = arriving(spec, target.dtype), target.share.everyone
    if not isinstance(found, TensorSpec | CompositeRowsSpec) or target.replicas.is_lone:
        return found
    if found.shape.rank == 0:
        raise InvalidArgumentError(
            f"An element with a scalar component, {spec}, cannot be split over {count} replicas.",
            fix="call batch(global_batch_size) on the dataset before you distribute it.",
        )
    rows = found.shape[0]
    return with_rows(found, None if rows is None or rows % count else rows // count)


def with_rows(spec: TypeSpec, rows: int | None) -> TypeSpec:
    """Return the spec of a batch with another number of rows; None if it varies."""
    if not isinstance(spec, TensorSpec | CompositeRowsSpec) or not spec.shape.rank:
        return spec
    shape = TensorShape([rows]).concatenate(spec.shape[1:])
    return TensorSpec(shape, spec.dtype) if isinstance(spec, TensorSpec) else spec.with_shape(shape)


class StepSource(ABC):
    """Makes the steps of each iteration over a distributed dataset.

    Args:
        options: The input options.
        worker: This worker.
    """

    def __init__(self, options: InputOptions, worker: WorkerInput) -> None:
        self._options = options
        self._share = worker.share
        self._topic = worker.topic
        self._errors = None if worker.topic is None else worker.topic.beside("errors")
        self._runs = None if worker.topic is None else worker.topic.beside("runs")
        self._is_same = worker.topic is None  # as on the other workers

    @property
    def share(self) -> Share:
        """This worker."""
        return self._share

    @property
    @abstractmethod
    def replicas(self) -> Replicas:
        """The replicas that get the steps."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of steps, or INFINITE or UNKNOWN."""

    @abstractmethod
    def spec(self) -> Any:
        """Return the spec of a step."""

    def explain(self, state: Any = None) -> Explanation:
        """Describe what each replica gets, and the position of a state."""
        if state is not None:
            self._saving().part_of(state)  # raises if it does not suit
        return self._explained(state)

    @abstractmethod
    def _explained(self, state: Any) -> Explanation: ...

    @abstractmethod
    def external_states(self) -> list[ExternalState]:
        """Return the external state of user functions, at the start of an iteration."""

    @abstractmethod
    def ignored(self) -> Ignored:
        """Return the errors that `ignore_errors` has ignored, over all workers."""

    @abstractmethod
    def _steps(self) -> HostSteps: ...

    @abstractmethod
    def _placing(
        self, convert: Callable[[Any], Any] | None
    ) -> Callable[[Sequence[Column]], Any]: ...

    @abstractmethod
    def _facts(self) -> Facts: ...

    def start(self, convert: Callable[[Any], Any] | None = None) -> StepsAhead:
        """Return the steps of a new iteration.

        Args:
            convert: Converts each value of a step.
        """
        self._check_same()
        return StepsAhead(self._steps, self._placing(convert), self.depth, self._runs)

    def _check_same(self) -> None:
        """Check once, before the first iteration, that all workers distribute the same dataset."""
        if self._topic is not None and not self._is_same:
            check_same(self._topic, self._facts())
            self._is_same = True

    @property
    def depth(self) -> int:
        """The number of steps to prefetch to the devices."""
        if not self._options.experimental_fetch_to_device:
            return 0
        return self._options.experimental_per_replica_buffer_size

    @property
    def most_together(self) -> int:
        """The most steps that are brought to the devices together, to run in one program."""
        return 1

    def state_of(self, steps: StepsAhead) -> dict[str, Any]:
        """Return the position of all workers as a state, with its version and file digests."""
        return self._saving().joined(steps.state())

    @abstractmethod
    def _saving(self) -> ClusterState: ...

    def restore(self, steps: StepsAhead, state: Any) -> None:
        """Restore a position.

        Raises:
            InvalidArgumentError: The state is invalid, or belongs to another dataset.
        """
        part = self._saving().part_of(state)
        try:
            steps.restore(part)
        except (LookupError, TypeError, AttributeError) as error:
            raise invalid_state(state) from error


class ReplicaFeed(StepSource):
    """Makes steps with one part for each replica.

    Args:
        replicas: The replicas.
        options: The input options.
        worker: This worker.
    """

    def __init__(self, replicas: Replicas, options: InputOptions, worker: WorkerInput) -> None:
        super().__init__(options, worker)
        self._replicas = replicas
        fetch = bool(options.experimental_fetch_to_device)
        self._target = StepTarget(replicas, worker.share, fetch)

    @property
    def replicas(self) -> Replicas:
        return self._replicas

    @abstractmethod
    def _structure(self) -> Any: ...

    def _placing(self, convert: Callable[[Any], Any] | None) -> Placing:
        fetch = self._target.fetch
        return Placing(self._structure(), self._replicas, fetch=fetch, convert=convert)


@final
class CutFeed(ReplicaFeed):
    """Splits the global batches of one dataset over the replicas.

    Args:
        plan: The user's plan.
        replicas: The replicas.
        options: The input options.
        worker: This worker.
    """

    def __init__(
        self, plan: Node, replicas: Replicas, options: InputOptions, worker: WorkerInput
    ) -> None:
        super().__init__(replicas, options, worker)
        self._plan = plan
        self._reading = BatchReading(plan, worker)

    @property
    def size(self) -> int:
        """The number of global batches, as in TensorFlow."""
        lanes = self._reading.sharded.lanes
        return size_of_lanes([lane.plan for lane in lanes]) if lanes else self._plan.size

    def spec(self) -> Any:
        if self._options.pad_partial_batches:
            return padded_spec(self._plan, self._target, self._rows_of_each)
        return cut_spec(self._plan, self._target, short=bool(self._reading.sharded.lanes))

    @property
    def _rows_of_each(self) -> int:
        return padded_rows(self._plan, self._share.everyone)

    @property
    def most_together(self) -> int:
        return most_together(self._plan, 1)

    def external_states(self) -> list[ExternalState]:
        return [ExternalState(self._plan)]

    def ignored(self) -> Ignored:
        shared = self._reading.sharded.policy is AutoShardPolicy.DATA
        return all_ignored([self._plan], self._errors, shared=shared)

    def _structure(self) -> Any:
        spec = self._plan.element_spec
        return (spec, None) if self._options.pad_partial_batches else spec

    def _facts(self) -> Facts:
        padded = self._rows_of_each if self._options.pad_partial_batches else None
        return cut_facts(self._plan, self._reading.sharded, padded)

    def _steps(self) -> HostSteps:
        if self._options.pad_partial_batches:
            return PadSteps(self._reading.whole_steps(), self._share.replicas, self._rows_of_each)
        return self._reading.steps()

    def _saving(self) -> ClusterState:
        return self._reading.saving

    def _explained(self, state: Any) -> Explanation:
        return cut_text(self._reading, self._replicas, self._options, state)


@final
class TakeFeed(ReplicaFeed):
    """Takes one element for each replica, in turn from one dataset, or from one dataset per replica.

    Args:
        plans: One plan, or one for each replica.
        replicas: The replicas.
        options: The input options.
        worker: This worker.
        fills: Whether some replicas may get no rows in a step.
    """

    def __init__(
        self,
        plans: Sequence[Node],
        replicas: Replicas,
        options: InputOptions,
        worker: WorkerInput,
        *,
        fills: bool = True,
    ) -> None:
        super().__init__(replicas, options, worker)
        self._plans = plans
        self._reading = ElementReading(plans, worker, fills=fills)

    @property
    def size(self) -> int:
        """The number of steps, or UNKNOWN if the size of any dataset is unknown."""
        sizes = [plan.size for plan in self._plans]
        if UNKNOWN in sizes:
            return UNKNOWN
        known = [size for size in sizes if size != INFINITE]
        if not known:
            return INFINITE
        return max(known) if len(sizes) > 1 else -(-known[0] // self._share.replicas)

    def spec(self) -> Any:
        return taken_spec(self._plans[0], self._target)

    @property
    def most_together(self) -> int:
        return most_together(self._plans[0], self._share.replicas)

    def external_states(self) -> list[ExternalState]:
        return [ExternalState(plan) for plan in self._plans]

    def ignored(self) -> Ignored:
        return all_ignored(self._plans, self._errors)

    def _structure(self) -> Any:
        return self._plans[0].element_spec

    def _facts(self) -> Facts:
        return taken_facts(self._plans[0], per_replica=len(self._plans) > 1)

    def _steps(self) -> HostSteps:
        return self._reading.steps()

    def _saving(self) -> ClusterState:
        return self._reading.saving

    def _explained(self, state: Any) -> Explanation:
        return taken_text(self.size, self._reading, self._replicas, self._options, state)
