"""Datasets of global `jax.Array` objects: each process reads the rows that its devices hold by a sharding."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, cast, final

from evenfeed.cluster.host_exchange import StoredAgreement, topic_name
from evenfeed.core import dtypes
from evenfeed.core.batch_split import HeldRows, Share
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack, packer
from evenfeed.dataset import Dataset, plan_of
from evenfeed.feeding.cluster_state import ClusterState
from evenfeed.feeding.composite_rows import CompositeRowsSpec
from evenfeed.feeding.consistency import Facts, cut_facts, taken_facts
from evenfeed.feeding.conversation import Topic
from evenfeed.feeding.distributed_dataset import (
    DistributedDataset,
    DistributedIterator,
    checked_dataset,
)
from evenfeed.feeding.explain_mesh import MeshInput, mesh_text
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.held_steps import HeldSteps, LocalSteps, check_rows, own_valid
from evenfeed.feeding.host_steps import Column, CountedSteps, HostSteps, length_of
from evenfeed.feeding.ignored_errors import all_ignored
from evenfeed.feeding.input_options import InputContext, InputOptions, input_options
from evenfeed.feeding.padding import padded_rows
from evenfeed.feeding.reading import ElementReading, WorkerInput, alone, run_of_chief
from evenfeed.feeding.shared_batches import SharedBatches
from evenfeed.feeding.step_sources import StepSource, arriving, with_rows
from evenfeed.plan.addressing import why_not_addressable
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy, options_of
from evenfeed.replicas.array_layouts import ArrayLayout, axes_in_words, held_rows, layout_of
from evenfeed.replicas.mesh import Replicas
from evenfeed.rewrite.worker_plan import Sharded, sharded_by_row
from evenfeed.runtime.explain import Explanation
from evenfeed.runtime.functions.called_functions import ExternalState
from evenfeed.runtime.live_state import Ignored
from evenfeed.tensors.device_arrays import held_dtype

_BY_ROW: Final = (AutoShardPolicy.AUTO, AutoShardPolicy.DATA, None)


class GlobalBatches(DistributedDataset):
    """A dataset of global batches, each a structure of `jax.Array` objects that are laid out by a sharding.

    `Dataset.distribute` and `evenfeed.distribute.global_batches` return it. Its iterators have `get_state` and
    `set_state`; a state suits any mesh and any number of processes.
    """

    def as_array_iterator(self) -> Any:
        """Iterate over the steps. They are arrays already."""
        return DistributedIterator(self._feed)


def global_batches(
    dataset: Any, sharding: Any, *, mesh: Any = None, options: object = None
) -> GlobalBatches:
    """Put every global batch of a dataset on devices, as a structure of `jax.Array` objects.

    Each process reads only the rows that its devices hold. Processes whose devices hold the same rows read the same rows.

    Args:
        dataset: A dataset of global batches, the same on all processes. Or a function of an InputContext that returns
            a dataset of this process's own rows: `input_pipeline_id` numbers the processes with different rows.
        sharding: A `NamedSharding` or a `PartitionSpec` for all components, or a structure of them. Its first entry
            says over which mesh axes rows are split.
        mesh: The mesh of each `PartitionSpec`; by default that of `jax.set_mesh`.
        options: InputOptions. With `pad_partial_batches`, each step is `(element, valid)`, and all have the same shapes.

    Raises:
        InvalidArgumentError: The axes do not divide the batches, or a sharding does not suit its component.

    Examples:
        >>> import jax
        >>> import evenfeed as tf
        >>> mesh = jax.make_mesh((2, 2), ("data", "model"), devices=jax.devices()[:4])
        >>> spec = jax.sharding.PartitionSpec("data")
        >>> dataset = tf.data.Dataset.range(8).batch(4)
        >>> for x in tf.distribute.global_batches(dataset, spec, mesh=mesh):
        ...     print(x.tolist(), [shard.data.tolist() for shard in x.addressable_shards])
        [0, 1, 2, 3] [[0, 1], [0, 1], [2, 3], [2, 3]]
        [4, 5, 6, 7] [[4, 5], [4, 5], [6, 7], [6, 7]]
    """
    chosen = input_options(options)
    if not chosen.experimental_fetch_to_device:
        raise ValueError(
            described(
                "Global arrays are always on devices, but got experimental_fetch_to_device=False.",
                fix="leave it out, or iterate over the Dataset itself.",
            )
        )
    if callable(dataset) and not isinstance(dataset, (Dataset, DistributedDataset)):
        return GlobalBatches(_local_feed(dataset, sharding, mesh, chosen))
    plan = plan_of(checked_dataset(dataset, Dataset))
    layout = layout_of(_specs(plan), sharding, mesh)
    return GlobalBatches(GlobalFeed(plan, layout, chosen, _worker(layout)))


def _local_feed(
    dataset_fn: Callable[[InputContext], Any], sharding: Any, mesh: Any, options: InputOptions
) -> "LocalFeed":
    held = held_rows(sharding, mesh)
    _check_disjoint(held)
    group = next(n for n, members in enumerate(held.groups) if held.worker in members)
    made = dataset_fn(InputContext(len(held.groups), group, held.shards))
    plan = plan_of(checked_dataset(made, Dataset))
    layout = layout_of(_specs(plan), sharding, mesh)
    return LocalFeed(plan, layout, options, _worker(layout))


def _check_disjoint(held: HeldRows) -> None:
    """Raise unless the processes have equally many rows each, and either the same or none in common."""
    groups = {held.held[members[0]] for members in held.groups}
    sizes = {len(shards) for shards in groups}
    if len(sizes) > 1 or sum(map(len, groups)) > held.shards:
        each = "; ".join(f"process {n} holds {shards}" for n, shards in enumerate(held.held))
        raise InvalidArgumentError(
            f"The processes cannot make batches of their own, because they share some of their {held.shards} shards of "
            f"rows: {each}.",
            fix="pass a dataset of global batches instead of a function; each process still reads only its rows.",
        )


def _worker(layout: ArrayLayout) -> WorkerInput:
    held = layout.rows
    if held.workers == 1:
        return alone(1)
    agreement = StoredAgreement(held.worker, held.workers)
    return WorkerInput(Share(held.worker, held.workers), Topic(topic_name(), agreement))


def _specs(plan: Node) -> Any:
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
        raise TypeError(
            described(
                "The steps of a GlobalBatches dataset are not for the replicas of a strategy.",
                fix="pass the Dataset itself; or distribute it with the strategy.",
            )
        )

    @property
    def size(self) -> int:
        return self._plan.size

    def spec(self) -> Any:
        specs = _specs(self._plan)  # not cached: dtypes depend on jax_enable_x64
        length = self._layout.rows.length
        if length is None:
            return self._unpadded_spec(specs)
        padded = [with_rows(spec, length) for spec in flatten(specs, DATA)]
        return pack(specs, padded, DATA), TensorSpec(TensorShape([length]), dtypes.bool)

    def _unpadded_spec(self, specs: Any) -> Any:
        return specs

    def external_states(self) -> list[ExternalState]:
        return [ExternalState(self._plan)]

    def _placing(self, convert: Callable[[Any], Any] | None) -> Callable[[Sequence[Column]], Any]:
        assert convert is None
        return ArrayPlacing(self._plan.element_spec, self._layout, self._axes)

    def _mesh_facts(self) -> Facts:
        held = self._layout.rows
        return {"sharding": f"{held.shards} shards of rows, of which processes hold {held.held}"}


@final
class GlobalFeed(MeshFeed):
    """Makes global arrays of the global batches of a dataset that all processes have."""

    def __init__(
        self, plan: Node, layout: ArrayLayout, options: InputOptions, worker: WorkerInput
    ) -> None:
        policy = options_of(plan).experimental_distribute.auto_shard_policy
        if policy not in _BY_ROW:
            raise InvalidArgumentError(
                f"Global arrays are read by row, but the dataset has AutoShardPolicy.{policy.name}.",
                fix="choose AutoShardPolicy.DATA; or pass a function of an InputContext, which returns a dataset of this "
                "process's own rows.",
            )
        super().__init__(plan, layout, options, worker)
        self._sharded = sharded_by_row(plan, self._layout.rows)
        topic = None if self._topic is None else self._topic.beside("state")
        known = why_not_addressable(self._sharded.plan) is None
        self._cluster = ClusterState(AutoShardPolicy.DATA.name, self._share, topic, is_known=known)

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
            return HeldSteps(sharded, held, begun)

        steps = SharedBatches(self._plan, self._sharded, held, start)
        return steps if topic is None else CountedSteps(steps)

    def _saving(self) -> ClusterState:
        return self._cluster

    def _explained(self, state: Any) -> Explanation:
        rows, short = global_batch_size(self._plan), self._plan.short_batch
        plan, notes = self._sharded.plan, self._sharded.notes
        given = MeshInput(self.size, rows, short, _specs(self._plan), plan, notes)
        return mesh_text(given, self._layout, self._options, state)


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
        given = MeshInput(self.size, rows, None, _specs(self._plan), self._plan, notes)
        return mesh_text(given, self._layout, self._options, state)


@final
class ArrayPlacing:
    """Turns the columns of a step into a structure of global arrays.

    Args:
        structure: The structure of an element.
        layout: The shardings of its components.
        axes: The mesh axes that split rows, in words.
    """

    def __init__(self, structure: Any, layout: ArrayLayout, axes: str) -> None:
        self._pack = packer(structure, DATA)
        self._layout = layout
        self._axes = axes

    def __call__(self, columns: Sequence[Column]) -> Any:
        """Return the step made from its columns."""
        layout, held = self._layout, self._layout.rows
        length, own = int(cast("Any", columns[0])), cast("Sequence[Any]", columns[1:])
        check_rows(length, held, self._axes)
        rows = length_of(own)
        arrays = [None if c is None else layout.put(i, c, length) for i, c in enumerate(own)]
        element = self._pack(arrays)
        if held.length is None:
            return element
        return element, layout.put_valid(own_valid(rows, held, length), length)
