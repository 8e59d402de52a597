"""Sources of the steps of `GlobalBatches`: what each process reads, and how it becomes global arrays.

`GlobalFeed` reads the global batches of one dataset by row, `LaneFeed` by lane. `LocalFeed` takes the batches that each process
makes of its own rows.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, final

from evenfeed.core import dtypes
from evenfeed.core.batch_split import HeldRows
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import INFINITE, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.feeding.agreed_steps import AgreedSteps
from evenfeed.feeding.ahead.steps_together import most_together
from evenfeed.feeding.cluster_state import ClusterState
from evenfeed.feeding.composite_rows import CompositeRowsSpec
from evenfeed.feeding.consistency import Facts, cut_facts, taken_facts
from evenfeed.feeding.explain_distribution import lanes_text
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.host_steps import Column, CountedSteps, HostSteps
from evenfeed.feeding.ignored_errors import all_ignored
from evenfeed.feeding.input_options import InputOptions
from evenfeed.feeding.lane_steps import HeldLanes, lanes_of, size_of_lanes
from evenfeed.feeding.meshes.array_placing import ArrayPlacing
from evenfeed.feeding.meshes.explain_mesh import MeshInput, mesh_text
from evenfeed.feeding.meshes.held_steps import (
    HeldSteps,
    LocalSteps,
    MarkedSteps,
    NarrowSteps,
    check_rows,
)
from evenfeed.feeding.padding import padded_rows
from evenfeed.feeding.reading import ElementReading, WorkerInput, run_of_chief, seeds_of_pass
from evenfeed.feeding.shared_batches import SharedBatches
from evenfeed.feeding.step_sources import StepSource, arriving, with_rows
from evenfeed.plan.addressing import why_not_addressable
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy, options_of
from evenfeed.replicas.array_layouts import ArrayLayout, axes_in_words
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplicaSpec
from evenfeed.rewrite.columns import with_columns
from evenfeed.rewrite.worker_plan import Sharded, in_all_lanes, sharded_by_row
from evenfeed.runtime.explain import Explanation
from evenfeed.runtime.functions.called_functions import ExternalState
from evenfeed.runtime.live_state import Ignored
from evenfeed.tensors.device_arrays import held_dtype

_BY_ROW: Final = (AutoShardPolicy.AUTO, AutoShardPolicy.DATA)


def policy_of(plan: Node) -> AutoShardPolicy:
    """Return the auto-shard policy of a plan."""
    return options_of(plan).experimental_distribute.auto_shard_policy or AutoShardPolicy.AUTO


def array_specs(plan: Node) -> Any:
    """Return the specs of the arrays of a plan's elements."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    return pack(plan.element_spec, [_array_spec(part) for part in parts], DATA)


def _array_spec(spec: TypeSpec) -> TypeSpec:
    found = arriving(spec, held_dtype)
    if isinstance(found, CompositeRowsSpec):
        raise TypeError(
            described(
                f"Only dense tensors become global arrays, but the elements have a component {spec}.",
                fix="make it dense in a map: x.to_tensor(), or sparse.to_dense(x).",
            )
        )
    if isinstance(found, TensorSpec) and found.dtype == dtypes.string:
        raise TypeError(
            described(
                "Strings stay on the host and cannot become global arrays, but the elements have a component "
                f"{spec}.",
                fix="drop the strings with map, or turn them into numbers first.",
            )
        )
    return found


def _part_spec(spec: TypeSpec, replicas: Replicas) -> TypeSpec:
    rows = spec.shape[0] if isinstance(spec, TensorSpec) and spec.shape.rank else None
    part = with_rows(spec, None if rows is None else rows // replicas.count)
    return PerReplicaSpec(*[part] * replicas.local_count)


class MeshFeed(StepSource):
    """Makes steps of global arrays.

    Args:
        plan: The user's plan on this process.
        layout: The shardings of its components.
        options: The input options.
        worker: This process.
    """

    def __init__(
        self, plan: Node, layout: ArrayLayout, options: InputOptions, worker: WorkerInput
    ) -> None:
        super().__init__(options, worker)
        self._plan = plan
        self._layout = layout.padded(self._padded_length(layout.rows))
        self._axes = axes_in_words(layout)
        if not options.pad_partial_batches:
            self._check_sizes()

    @abstractmethod
    def _padded_length(self, held: HeldRows) -> int | None: ...

    @abstractmethod
    def _check_sizes(self) -> None: ...

    @property
    def replicas(self) -> Replicas:
        if self._layout.replicas is not None:
            return self._layout.replicas
        raise TypeError(
            described(
                "The steps of a GlobalBatches dataset are not for the replicas of a strategy.",
                fix="pass the Dataset itself; or distribute it with the strategy.",
            )
        )

    @property
    def size(self) -> int:
        return self._plan.size

    @property
    def most_together(self) -> int:
        return 1 if self._layout.replicas is None else most_together(self._plan, 1)

    def spec(self) -> Any:
        specs = array_specs(self._plan)  # not cached: dtypes depend on jax_enable_x64
        length = self._layout.rows.length
        if length is None:
            return self._of_replicas(self._unpadded_spec(specs))
        padded = [with_rows(spec, length) for spec in flatten(specs, DATA)]
        valid = TensorSpec(TensorShape([length]), dtypes.bool)
        return self._of_replicas((pack(specs, padded, DATA), valid))

    def _of_replicas(self, specs: Any) -> Any:
        """Return the specs of the parts of global arrays, if replicas of a strategy get them."""
        replicas = self._layout.replicas
        if replicas is None:
            return specs
        each: list[TypeSpec] = flatten(specs, DATA)
        return pack(specs, [_part_spec(spec, replicas) for spec in each], DATA)

    def _unpadded_spec(self, specs: Any) -> Any:
        return specs

    def external_states(self) -> list[ExternalState]:
        return [ExternalState(self._plan)]

    def _placing(self, convert: Callable[[Any], Any] | None) -> Callable[[Sequence[Column]], Any]:
        return ArrayPlacing(self._plan.element_spec, self._layout, self._axes, convert)

    def _mesh_facts(self) -> Facts:
        held = self._layout.rows
        return {"sharding": f"{held.shards} shards of rows, of which processes hold {held.held}"}


@final
class GlobalFeed(MeshFeed):
    """Makes global arrays of the global batches of a dataset that all processes have."""

    def __init__(
        self, plan: Node, layout: ArrayLayout, options: InputOptions, worker: WorkerInput
    ) -> None:
        policy = policy_of(plan)
        if policy not in _BY_ROW:
            raise InvalidArgumentError(
                f"Global arrays are read by row or by lane, but the dataset has AutoShardPolicy.{policy.name}.",
                fix="choose AutoShardPolicy.DATA or AutoShardPolicy.LANES; or pass a function of an InputContext, which returns a dataset of this "
                "process's own rows.",
            )
        super().__init__(plan, layout, options, worker)
        self._sharded = sharded_by_row(plan, self._layout.rows)
        self._narrow = self._narrowed()
        topic = None if self._topic is None else self._topic.beside("state")
        known = why_not_addressable(self._sharded.plan) is None
        self._cluster = ClusterState(AutoShardPolicy.DATA.name, self._share, topic, is_known=known)

    def _narrowed(self) -> Sharded | None:
        """Return the plan of the columns that this process holds; None if it must read whole rows."""
        parts = self._layout.held_columns(flatten(array_specs(self._plan), DATA))
        plan = with_columns(self._plan, [None if part is None else part.slices for part in parts])
        if plan is None:
            return None
        self._layout = replace(self._layout, columns=parts)
        return sharded_by_row(plan, self._layout.rows)

    def _padded_length(self, held: HeldRows) -> int | None:
        if not self._options.pad_partial_batches:
            return None
        return padded_rows(self._plan, held.shards) * held.shards

    def _check_sizes(self) -> None:
        held = self._layout.rows
        size, short = global_batch_size(self._plan), self._plan.short_batch
        if size is not None:
            check_rows(size, held, self._axes)
        if short is not None:
            drop = f"drop the last batch, which is short: batch({size}, drop_remainder=True)"
            check_rows(short, held, self._axes, fix=drop)

    def ignored(self) -> Ignored:
        return all_ignored([self._plan], self._errors, shared=True)

    def _facts(self) -> Facts:
        return {
            **cut_facts(self._plan, self._sharded, self._layout.rows.length),
            **self._mesh_facts(),
        }

    def _steps(self) -> HostSteps:
        held, topic = self._layout.rows, self._topic
        begun = None if topic is None else run_of_chief(self._sharded.plan, topic)

        def start(sharded: Sharded) -> HostSteps:
            if sharded is not self._sharded or self._narrow is None:
                return HeldSteps(sharded, held, begun)
            steps = HeldSteps(self._narrow, held, begun)
            return NarrowSteps(steps, sharded.plan, self._narrow.plan)

        steps = SharedBatches(self._plan, self._sharded, held, start)
        return steps if topic is None else CountedSteps(steps)

    def _saving(self) -> ClusterState:
        return self._cluster

    def _explained(self, state: Any) -> Explanation:
        rows, short = global_batch_size(self._plan), self._plan.short_batch
        plan, notes = self._sharded.plan, self._sharded.notes
        together = self.most_together if why_not_addressable(plan) is None else 1
        given = MeshInput(self.size, rows, short, array_specs(self._plan), plan, notes, together)
        return mesh_text(given, self._layout, self._options, state)


@final
class LaneFeed(MeshFeed):
    """Makes global arrays of the lanes of a dataset. Each lane has a fixed place in a global batch."""

    def __init__(
        self, plan: Node, layout: ArrayLayout, options: InputOptions, worker: WorkerInput
    ) -> None:
        self._sharded = in_all_lanes(plan)
        self._rows = padded_rows(plan, 1)
        super().__init__(plan, layout, options, worker)
        held, lanes = self._layout.rows, len(self._sharded.lanes)
        every = [held._replace(worker=worker) for worker in range(held.workers)]
        self._owners = tuple(tuple(lanes_of(own, self._rows, lanes)) for own in every)
        topic = None if self._topic is None else self._topic.beside("state")
        name = AutoShardPolicy.LANES.name
        self._cluster = ClusterState(name, self._share, topic, lanes=self._owners)

    def _padded_length(self, held: HeldRows) -> int | None:
        if not self._options.pad_partial_batches:
            return None
        return -(-self._rows // held.shards) * held.shards

    def _check_sizes(self) -> None:
        check_rows(self._rows, self._layout.rows, self._axes)
        specs: list[TypeSpec] = flatten(self._plan.element_spec, DATA)
        full = all(spec.shape[0] is not None for spec in specs if isinstance(spec, TensorSpec))
        sizes = {lane.plan.size for lane in self._sharded.lanes}
        if not full or len(sizes) > 1 or not (min(sizes) >= 0 or sizes == {INFINITE}):
            raise InvalidArgumentError(
                "The lanes of the dataset may give different numbers of rows to a batch, or end at different steps.",
                fix="pass InputOptions(pad_partial_batches=True), which marks the rows that are missing; or call repeat() and "
                "batch(n, drop_remainder=True).",
                origin=self._plan.origin,
            )

    @property
    def size(self) -> int:
        return size_of_lanes([lane.plan for lane in self._sharded.lanes])

    def ignored(self) -> Ignored:
        return all_ignored([self._plan], self._errors, shared=len(set(self._owners)) == 1)

    def _facts(self) -> Facts:
        length = self._layout.rows.length
        return {**cut_facts(self._plan, self._sharded, length), **self._mesh_facts()}

    def _steps(self) -> HostSteps:
        held, topic = self._layout.rows, self._topic
        steps: HostSteps = HeldLanes(
            self._sharded, held, self._rows, seeds_of_pass(self._plan, topic)
        )
        if topic is not None:
            spec = TensorSpec([None], dtypes.bool), self._plan.element_spec
            steps = AgreedSteps(steps, spec, self._share, talk=topic.next_pass)
        return CountedSteps(MarkedSteps(steps, held.length or self._rows))

    def _placing(self, convert: Callable[[Any], Any] | None) -> "ArrayPlacing":
        spec = self._plan.element_spec
        return ArrayPlacing(spec, self._layout, self._axes, convert, marked=True)

    def _saving(self) -> ClusterState:
        return self._cluster

    def _explained(self, state: Any) -> Explanation:
        lanes, processes = self._sharded.lanes, self._layout.processes
        readers = [
            [str(processes[worker]) for worker, own in enumerate(self._owners) if number in own]
            for number in range(len(lanes))
        ]
        owners = [f"process {' and '.join(names)}" for names in readers]
        notes = lanes_text(lanes, owners, state)
        plan = self._sharded.plan
        specs, together = array_specs(self._plan), self.most_together
        given = MeshInput(self.size, self._rows, None, specs, plan, notes, together)
        return mesh_text(given, self._layout, self._options, None)


@final
class LocalFeed(MeshFeed):
    """Makes global arrays of batches that each process makes of its own rows."""

    def __init__(
        self, plan: Node, layout: ArrayLayout, options: InputOptions, worker: WorkerInput
    ) -> None:
        super().__init__(plan, layout, options, worker)
        self._reading = ElementReading([plan], worker)

    def _padded_length(self, held: HeldRows) -> int | None:
        if not self._options.pad_partial_batches:
            return None
        each = len(held.own_shards)
        return padded_rows(self._plan, each) * each * len(held.groups)

    def _check_sizes(self) -> None:
        held = self._layout.rows
        size = global_batch_size(self._plan)
        own = held._replace(shards=len(held.own_shards))
        if size is not None:
            check_rows(size, own, f"the devices of this process and {self._axes}")

    def _unpadded_spec(self, specs: Any) -> Any:
        groups = len(self._layout.rows.groups)

        def joined(spec: TypeSpec) -> TypeSpec:
            rows = spec.shape[0] if isinstance(spec, TensorSpec) and spec.shape.rank else None
            return with_rows(spec, None if rows is None else rows * groups)

        return pack(specs, [joined(spec) for spec in flatten(specs, DATA)], DATA)

    def ignored(self) -> Ignored:
        return all_ignored([self._plan], self._errors)

    def _facts(self) -> Facts:
        return {**taken_facts(self._plan, per_replica=False), **self._mesh_facts()}

    def _steps(self) -> HostSteps:
        held = self._layout.rows
        return LocalSteps(self._reading.steps(), len(held.groups), held.length)

    def _saving(self) -> ClusterState:
        return self._reading.saving

    def _explained(self, state: Any) -> Explanation:
        own = global_batch_size(self._plan)
        rows = None if own is None else own * len(self._layout.rows.groups)
        notes = ("each process reads a dataset of its own rows",)
        specs, together = array_specs(self._plan), self.most_together
        given = MeshInput(self.size, rows, None, specs, self._plan, notes, together)
        return mesh_text(given, self._layout, self._options, state)
