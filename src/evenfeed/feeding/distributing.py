"""Makes distributed datasets from datasets or from a `dataset_fn`."""

from collections.abc import Callable
from typing import Any

from evenfeed.cluster.host_exchange import StoredAgreement, topic_name
from evenfeed.core.batch_split import Share
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.dataset import Dataset, plan_of
from evenfeed.feeding.agreed_steps import Topic
from evenfeed.feeding.distributed_dataset import DistributedDataset
from evenfeed.feeding.input_options import InputContext, InputOptions, InputReplicationMode
from evenfeed.feeding.reading import WorkerInput, alone
from evenfeed.feeding.step_sources import CutFeed, TakeFeed
from evenfeed.replicas.mesh import Replicas


def distributed(dataset: Any, replicas: Replicas, options: InputOptions) -> DistributedDataset:
    """Split the global batches of a dataset over the replicas."""
    if options.experimental_replication_mode is InputReplicationMode.PER_REPLICA:
        raise NotImplementedError(
            described(
                "PER_REPLICA needs one dataset per replica, but got a single dataset.",
                fix="use distribute_datasets_from_function(dataset_fn, options).",
            )
        )
    plan = plan_of(checked_dataset(dataset, Dataset))
    return DistributedDataset(CutFeed(plan, replicas, options, worker_of(replicas)))


def distributed_from_function(
    dataset_fn: Callable[[InputContext], Any],
    replicas: Replicas,
    options: InputOptions,
    *,
    fills: bool = True,
) -> DistributedDataset:
    """Distribute the datasets that a function makes. `fills` allows replicas without rows in a step."""
    worker = worker_of(replicas)
    if not callable(dataset_fn):
        raise TypeError(
            described(
                f"dataset_fn must be a function that returns a dataset, but got {shortened(dataset_fn)}.",
                fix="pass a function of an InputContext; for a dataset use experimental_distribute_dataset.",
            )
        )
    if options.pad_partial_batches:
        raise NotImplementedError(
            described(
                "pad_partial_batches pads global batches, but a dataset_fn makes per-replica batches.",
                fix="use experimental_distribute_dataset, or pad the batches in dataset_fn.",
            )
        )
    per_replica = options.experimental_replication_mode is InputReplicationMode.PER_REPLICA
    if options.experimental_place_dataset_on_device:
        _check_placement(options, per_replica=per_replica)
    contexts = input_contexts(worker.share, per_replica=per_replica)
    made = [checked_dataset(dataset_fn(context), Dataset) for context in contexts]
    plans = [plan_of(dataset) for dataset in made]
    return DistributedDataset(TakeFeed(plans, replicas, options, worker, fills=fills))


def input_contexts(share: Share, *, per_replica: bool) -> list[InputContext]:
    """Return the contexts for a `dataset_fn`: one for this worker, or one for each of its replicas."""
    own = share.replicas if per_replica else 1
    first, pipelines = share.worker * own, share.workers * own
    return [InputContext(pipelines, first + i, share.everyone) for i in range(own)]


def worker_of(replicas: Replicas) -> WorkerInput:
    """Return this worker's share of the replicas, and its connection to the other workers."""
    if not replicas.spans:
        return alone(replicas.count)
    workers = replicas.count // replicas.local_count
    worker = replicas.first // replicas.local_count
    agreement = StoredAgreement(worker, workers, replicas.session.patience)
    return WorkerInput(Share(worker, workers, replicas.local_count), Topic(topic_name(), agreement))


def _check_placement(options: InputOptions, *, per_replica: bool) -> None:
    if per_replica and not options.experimental_fetch_to_device:
        return
    raise ValueError(
        described(
            "experimental_place_dataset_on_device requires PER_REPLICA and experimental_fetch_to_device=False.",
            fix="leave it out, because datasets always run on the host; or pass InputOptions("
            "experimental_fetch_to_device=False, experimental_replication_mode=InputReplicationMode.PER_REPLICA, "
            "experimental_place_dataset_on_device=True).",
        )
    )


def checked_dataset(dataset: Any, kind: type) -> Any:
    """Return the dataset. Raise TypeError for anything else."""
    if isinstance(dataset, kind):
        return dataset
    if isinstance(dataset, DistributedDataset):
        raise TypeError(
            described(
                "The dataset is already distributed.",
                fix="iterate over it, or pass the Dataset that it was made from.",
            )
        )
    raise TypeError(
        described(
            f"dataset must be a Dataset, but got {shortened(dataset)}.",
            fix="make one first: evenfeed.data.Dataset.from_tensor_slices(value).batch(n).",
        )
    )
