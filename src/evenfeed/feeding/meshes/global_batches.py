"""Datasets of global `jax.Array` objects: each process reads the rows that its devices hold by a sharding."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evenfeed.cluster.host_exchange import StoredAgreement, topic_name
from evenfeed.core.batch_split import HeldRows, Share
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.dataset import Dataset, plan_of
from evenfeed.feeding.conversation import Topic
from evenfeed.feeding.distributed_dataset import (
    DistributedDataset,
    DistributedIterator,
    checked_dataset,
)
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.input_options import InputContext, InputOptions, input_options
from evenfeed.feeding.meshes.mesh_feeds import (
    GlobalFeed,
    LaneFeed,
    LocalFeed,
    array_specs,
    policy_of,
)
from evenfeed.feeding.reading import WorkerInput, alone
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.replicas.array_layouts import ArrayLayout, held_rows, layout_of
from evenfeed.replicas.mesh import Replicas


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
    chosen = _checked(input_options(options))
    if callable(dataset) and not isinstance(dataset, (Dataset, DistributedDataset)):
        return GlobalBatches(_local_feed(dataset, sharding, mesh, chosen))
    plan = plan_of(checked_dataset(dataset, Dataset))
    return GlobalBatches(_global_feed(plan, layout_of(array_specs(plan), sharding, mesh), chosen))


def batches_of_processes(dataset: Any, replicas: Replicas, options: object) -> DistributedDataset:
    """Split the global batches of a dataset over replicas whose devices are on several processes.

    Processes may share replicas: each reads the rows of the replicas that it has devices of.
    """
    plan = plan_of(checked_dataset(dataset, Dataset))
    layout = layout_of(array_specs(plan), replicas.sharding)
    chosen = _checked(input_options(options))
    return DistributedDataset(_global_feed(plan, replace(layout, replicas=replicas), chosen))


def batches_from_function(
    dataset_fn: Callable[[InputContext], Any], replicas: Replicas, options: object
) -> DistributedDataset:
    """Distribute the datasets of per-replica batches that a function makes, one for each set of replicas.

    Processes with devices of the same replicas make the same dataset.
    """
    held = held_rows(replicas.sharding, None)
    _check_disjoint(held)
    made = checked_dataset(dataset_fn(_context(held)), Dataset)
    size = global_batch_size(plan_of(made))
    if size is None:
        raise InvalidArgumentError(
            "The batches of the dataset may have any number of rows, but the processes must have the same number at each step.",
            fix="make batch(n) the last transformation that changes the number of rows.",
            origin=plan_of(made).origin,
        )
    plan = plan_of(made.unbatch().batch(size * len(held.own_shards)))
    layout = replace(layout_of(array_specs(plan), replicas.sharding), replicas=replicas)
    return DistributedDataset(
        LocalFeed(plan, layout, _checked(input_options(options)), _worker(layout))
    )


def _context(held: HeldRows) -> InputContext:
    """Return what a function is told of the rows of this process."""
    group = next(n for n, members in enumerate(held.groups) if held.worker in members)
    return InputContext(len(held.groups), group, held.shards)


def _global_feed(plan: Node, layout: ArrayLayout, options: InputOptions) -> GlobalFeed | LaneFeed:
    kind = LaneFeed if policy_of(plan) is AutoShardPolicy.LANES else GlobalFeed
    return kind(plan, layout, options, _worker(layout))


def _checked(options: InputOptions) -> InputOptions:
    if options.experimental_fetch_to_device:
        return options
    raise ValueError(
        described(
            "Global arrays are always on devices, but got experimental_fetch_to_device=False.",
            fix="leave it out, or iterate over the Dataset itself.",
        )
    )


def _local_feed(
    dataset_fn: Callable[[InputContext], Any], sharding: Any, mesh: Any, options: InputOptions
) -> LocalFeed:
    held = held_rows(sharding, mesh)
    _check_disjoint(held)
    plan = plan_of(checked_dataset(dataset_fn(_context(held)), Dataset))
    layout = layout_of(array_specs(plan), sharding, mesh)
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
