"""The specs of what a step yields."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.batch_split import Share
from evenfeed.core.conversion import shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import INFINITE, UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.feeding.consistency import Facts, check_same, cut_facts, taken_facts
from evenfeed.feeding.explain_distribution import cut_text, taken_text
from evenfeed.feeding.host_steps import HostSteps, is_static
from evenfeed.feeding.input_options import InputOptions
from evenfeed.feeding.placing import PadSteps, Placing, padded_rows
from evenfeed.feeding.prefetch import StepsAhead
from evenfeed.feeding.reading import BatchReading, ElementReading, WorkerInput
from evenfeed.plan.node import Node
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplicaSpec
from evenfeed.runtime.explain import Explanation
from evenfeed.runtime.file_digests import with_digests
from evenfeed.runtime.functions.called_functions import ExternalState


@final
@dataclass(frozen=True)
class Arrival:
    """Who gets the steps, and whether they go to the devices, where JAX may have no 64-bit types."""

    replicas: Replicas
    share: Share
    fetch: bool = True

    def dtype(self, given: DType) -> DType:
        """Return the dtype in which values arrive."""
        return self.replicas.arriving(given) if self.fetch else given


def cut_spec(plan: Node, arrival: Arrival) -> Any:
    """Return the specs where each global batch is cut over the replicas."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    return _for_all(plan, [_cut(part, arrival) for part in parts], arrival, short=False)


def taken_spec(plan: Node, arrival: Arrival) -> Any:
    """Return the specs where each replica takes elements as they are."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    short = arrival.share.everyone > 1 and not is_static(plan)  # replicas may get no element
    return _for_all(plan, [_arriving(part, arrival) for part in parts], arrival, short=short)


def padded_spec(plan: Node, arrival: Arrival, rows: int) -> Any:
    """Return the specs where every step has `rows` rows for each replica, and says which are valid."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    pieces = [_with_rows(_cut(part, arrival), rows) for part in parts]
    valid = _several(TensorSpec([rows], dtypes.bool), arrival)
    return pack(plan.element_spec, [_several(p, arrival) for p in pieces], DATA), valid


def _for_all(plan: Node, pieces: Sequence[TypeSpec], arrival: Arrival, *, short: bool) -> Any:
    if plan.size != INFINITE and (arrival.share.workers > 1 or short):
        # The last step may be short in every part, and a worker may run dry before it.
        pieces = [_with_rows(piece, None) for piece in pieces]
    return pack(plan.element_spec, [_several(piece, arrival) for piece in pieces], DATA)


def _several(piece: TypeSpec, arrival: Arrival) -> TypeSpec:
    if arrival.share.everyone == 1:
        return piece
    return PerReplicaSpec(*[piece] * arrival.share.replicas)


def _arriving(spec: TypeSpec, arrival: Arrival) -> TypeSpec:
    if isinstance(spec, TensorSpec):
        return TensorSpec(spec.shape, arrival.dtype(spec.dtype))
    if isinstance(spec, NoneTensorSpec):
        return spec
    raise TypeError(
        described(
            f"Replicas get tensors, but a part of the elements is {spec}.",
            fix="turn it into tensors first: flat_map takes datasets apart, map opens an Optional.",
        )
    )


def _cut(spec: TypeSpec, arrival: Arrival) -> TypeSpec:
    arriving, count = _arriving(spec, arrival), arrival.share.everyone
    if not isinstance(arriving, TensorSpec) or count == 1:
        return arriving
    if arriving.shape.rank == 0:
        raise InvalidArgumentError(
            f"An element with a scalar part, {spec}, cannot be cut over {count} replicas.",
            fix="call batch(global_batch_size) on the dataset before you distribute it.",
        )
    rows = arriving.shape[0]
    even = rows is not None and rows % count == 0
    return _with_rows(arriving, rows // count if even and rows is not None else None)


def _with_rows(spec: TypeSpec, rows: int | None) -> TypeSpec:
    if not isinstance(spec, TensorSpec) or not spec.shape.rank:
        return spec
    return TensorSpec(TensorShape([rows]).concatenate(spec.shape[1:]), spec.dtype)


_VERSION = 1


class StepSource(ABC):
    """Makes the steps of each pass over a distributed dataset.

    Args:
        replicas: Who is fed.
        options: How.
        worker: Whose replicas they are.
    """

    def __init__(self, replicas: Replicas, options: InputOptions, worker: WorkerInput) -> None:
        self._replicas = replicas
        self._options = options
        self._share = share = worker.share
        self._topic = worker.topic
        self._is_same = worker.topic is None  # as on the other workers
        self._arrival = Arrival(replicas, share, bool(options.experimental_fetch_to_device))

    @property
    def replicas(self) -> Replicas:
        """Who is fed."""
        return self._replicas

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of steps, or INFINITE or UNKNOWN."""

    @abstractmethod
    def spec(self) -> Any:
        """Return the specs of what a step yields."""

    @abstractmethod
    def explain(self) -> Explanation:
        """Say who gets what."""

    @abstractmethod
    def outside(self) -> list[ExternalState]:
        """Return what users' functions keep outside of the datasets, where a pass begins now."""

    @abstractmethod
    def _steps(self) -> HostSteps: ...

    @abstractmethod
    def _structure(self) -> Any: ...

    @abstractmethod
    def _facts(self) -> Facts: ...

    def started(self) -> StepsAhead:
        """Return the steps of a new pass."""
        self._check_same()
        placing = Placing(self._structure(), self._replicas, fetch=self._arrival.fetch)
        return StepsAhead(self._steps, placing, self.depth)

    def _check_same(self) -> None:
        """Compare what the workers distribute, before the first pass of all."""
        if self._topic is not None and not self._is_same:
            check_same(self._topic, self._facts())
            self._is_same = True

    @property
    def depth(self) -> int:
        """How many steps are brought to the devices before they are asked for."""
        if not self._arrival.fetch:
            return 0
        return self._options.experimental_per_replica_buffer_size

    def state_of(self, steps: StepsAhead) -> dict[str, Any]:
        """Return a position, with what is needed to know it again."""
        state = {"version": _VERSION, "workers": self._share.workers, **steps.state()}
        return with_digests(state)

    def restore(self, steps: StepsAhead, state: Any) -> None:
        """Take up a position.

        Raises:
            InvalidArgumentError: It is not one of such a dataset.
        """
        given: Any = state
        if not isinstance(state, dict) or not {"version", "at", "rows"} <= given.keys():
            raise _no_state(given)
        if given["version"] != _VERSION:
            raise InvalidArgumentError(
                f"The state has version {given['version']}, but this evenfeed reads {_VERSION}.",
                fix="read it with the evenfeed that wrote it, or begin anew.",
            )
        try:
            steps.restore(given)
        except InvalidArgumentError as error:
            self._check_workers(given.get("workers"), error)
            raise
        except (LookupError, TypeError, AttributeError) as error:
            raise _no_state(given) from error

    def _check_workers(self, then: int | None, error: InvalidArgumentError) -> None:
        """Raise if a state does not fit because the cluster had another size when it was taken."""
        now = self._share.workers
        if then not in (None, now):
            raise InvalidArgumentError(
                f"The state was taken on {_counted(then)}, but the cluster has {_counted(now)}.",
                fix=f"restore it on {_counted(then)}.",
            ) from error


def _counted(workers: int | None) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"


def _no_state(given: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{shortened(given)} is no state of a distributed iterator.",
        fix="pass what get_state() returned; if it was written as text, json.loads(text).",
    )


@final
class CutFeed(StepSource):
    """Cuts the global batches of one dataset over the replicas.

    Args:
        plan: The user's.
        replicas: Who is fed.
        options: How.
        worker: Whose replicas they are.
    """

    def __init__(
        self, plan: Node, replicas: Replicas, options: InputOptions, worker: WorkerInput
    ) -> None:
        super().__init__(replicas, options, worker)
        self._plan = plan
        self._reading = BatchReading(plan, worker)

    @property
    def size(self) -> int:
        """The number of global batches, as TensorFlow tells it."""
        return self._plan.size

    def spec(self) -> Any:
        """Return the specs of what a step yields."""
        if self._options.pad_partial_batches:
            return padded_spec(self._plan, self._arrival, self._rows_of_each)
        return cut_spec(self._plan, self._arrival)

    @property
    def _rows_of_each(self) -> int:
        return padded_rows(self._plan, self._share.everyone)

    def outside(self) -> list[ExternalState]:
        """Return what functions of the one dataset keep."""
        return [ExternalState(self._plan)]

    def _structure(self) -> Any:
        spec = self._plan.element_spec
        return (spec, None) if self._options.pad_partial_batches else spec

    def _facts(self) -> Facts:
        padded = self._rows_of_each if self._options.pad_partial_batches else None
        return cut_facts(self._plan, self._reading.sharded.policy, padded)

    def _steps(self) -> HostSteps:
        if self._options.pad_partial_batches:
            return PadSteps(self._reading.whole_steps(), self._share.replicas, self._rows_of_each)
        return self._reading.steps()

    def explain(self) -> Explanation:
        """Say who gets which rows."""
        return cut_text(self._reading, self._replicas, self._options)


@final
class TakeFeed(StepSource):
    """Takes one element for each replica: of one dataset in turn, or each of its own.

    Args:
        plans: One plan, or one for each replica.
        replicas: Who is fed.
        options: How.
        worker: Whose replicas they are.
        fills: Whether there are steps in which some replicas get no rows.
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
        """The number of steps, where all datasets tell theirs."""
        sizes = [plan.size for plan in self._plans]
        if UNKNOWN in sizes:
            return UNKNOWN
        known = [size for size in sizes if size != INFINITE]
        if not known:
            return INFINITE
        return max(known) if len(sizes) > 1 else -(-known[0] // self._share.replicas)

    def spec(self) -> Any:
        """Return the specs of what a step yields."""
        return taken_spec(self._plans[0], self._arrival)

    def outside(self) -> list[ExternalState]:
        """Return what functions of all datasets keep."""
        return [ExternalState(plan) for plan in self._plans]

    def _structure(self) -> Any:
        return self._plans[0].element_spec

    def _facts(self) -> Facts:
        return taken_facts(self._plans[0], per_replica=len(self._plans) > 1)

    def _steps(self) -> HostSteps:
        return self._reading.steps()

    def explain(self) -> Explanation:
        """Say who takes what."""
        return taken_text(self.size, self._reading, self._replicas, self._options)
