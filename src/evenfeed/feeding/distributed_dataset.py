"""`DistributedDataset` and its iterators, and how a strategy makes them from a dataset or a `dataset_fn`."""

from collections.abc import Callable
from functools import partial
from typing import Any, final

from evenfeed.cluster.host_exchange import StoredAgreement, topic_name
from evenfeed.core import side_effects
from evenfeed.core.batch_split import Share
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.iteration import Iterator, Owner, StepRun, reading
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.dataset import Dataset, plan_of
from evenfeed.feeding.conversation import Topic
from evenfeed.feeding.explain_distribution import steps_taken_text
from evenfeed.feeding.input_options import InputContext, InputOptions, InputReplicationMode
from evenfeed.feeding.placing import array_of, array_specs_of
from evenfeed.feeding.reading import WorkerInput, alone
from evenfeed.feeding.step_meters import DistributedStats, StepMeter
from evenfeed.feeding.step_sources import CutFeed, StepSource, TakeFeed
from evenfeed.live.watching import watching
from evenfeed.replicas import contexts
from evenfeed.replicas.mesh import Replicas
from evenfeed.runtime.explain import Explanation
from evenfeed.runtime.live_state import Ignored
from evenfeed.runtime.measuring.pipeline_stats import not_measured


class DistributedDataset:
    """A dataset that gives each replica its own part of the data at every step.

    `Strategy.experimental_distribute_dataset` and `Strategy.distribute_datasets_from_function` return it. It
    can be iterated over and has an `element_spec`. Apply transformations to the Dataset before you distribute it.

    Args:
        feed: The source of its steps.
    """

    def __init__(self, feed: StepSource) -> None:
        self._feed = feed
        feed.spec()  # raises now if the elements cannot be split

    @property
    def element_spec(self) -> Any:
        """The spec of a step. With several replicas, each leaf is a PerReplicaSpec."""
        # Not cached: dtypes depend on jax_enable_x64, which may change later.
        return self._feed.spec()

    @property
    def cardinality(self) -> int:
        """The number of global batches, or `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return self._feed.size

    def __iter__(self) -> "DistributedIterator":
        return DistributedIterator(self._feed)

    def __len__(self) -> int:
        size = self._feed.size
        if size in (INFINITE, UNKNOWN):
            kind = "infinite" if size == INFINITE else "unknown until it is read"
            raise TypeError(
                described(
                    f"The distributed dataset has no len(): its number of steps is {kind}.",
                    fix="use its cardinality, which has a value for both cases.",
                )
            )
        return size

    def __bool__(self) -> bool:
        return True  # without this, bool() would call len()

    def as_array_iterator(self) -> "ArrayIterator":
        """Iterate over the steps as structures of `jax.Array` objects sharded over the replicas.

        Use the arrays with your own `jax.jit` or `jax.shard_map`. The iterator has `get_state` and
        `set_state`. Its states are interchangeable with those of `iter(dataset)`.

        Raises:
            InvalidArgumentError: A step cannot be one array: its parts differ in length, or are strings.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
            >>> for x in dataset.as_array_iterator():
            ...     print(x.tolist(), x.sharding.is_equivalent_to(strategy.sharding("replica"), 1))
            [0, 1, 2, 3] True
        """
        return ArrayIterator(self._feed)

    def explain(self, state: dict[str, Any] | None = None) -> Explanation:
        """Describe what each replica gets at each step, what is prefetched, and how the dataset runs.

        Args:
            state: What `get_state` of an iterator returned: also shows the position, with lanes that of each.

        Raises:
            InvalidArgumentError: The state does not suit this dataset or these workers.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> dataset = tf.data.Dataset.range(9).batch(4)
            >>> strategy.experimental_distribute_dataset(dataset).explain()  # doctest: +ELLIPSIS
            DistributedDataset: 3 steps on 2 replicas of worker 0
              replica 0  CPU:0  2 rows per step: 0-1 of each batch
              replica 1  CPU:1  2 rows per step: 2-3 of each batch
              batches: 4 rows over all replicas, each split separately, rounding up
              last step: 1 row, by replica: 1, 0
              prefetch: 1 step, copied to the devices by a thread
              in one program: up to 128 steps, copied together
              dataset:
                 1  range(0, 9)  <doctest ...>:1  9 elements  () int64
                 2  batch(4)     <doctest ...>:1  3 elements  (?,) int64
                      read sequentially from here on: each element is made of several
                resume: by position
        """
        return self._feed.explain(state)

    def ignored_errors(self) -> Ignored:
        """Return the errors that the last `ignore_errors` has ignored, on all workers and over all passes so far.

        All workers must call it. Workers that share rows ignore the same errors; each is listed once.

        Examples:
            >>> import evenfeed as tf
            >>> rows = tf.data.TFRecordDataset(["/none.tfrecord"]).ignore_errors()
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> dataset = strategy.experimental_distribute_dataset(rows.batch(4))
            >>> list(dataset), [file for file, _, _ in dataset.ignored_errors().skipped]
            ([], ['/none.tfrecord'])
        """
        return self._feed.ignored()

    def __getattr__(self, name: str) -> Any:
        if name in dir(
            type(self)
        ):  # a property whose user function raised an AttributeError: raise that one
            return object.__getattribute__(self, name)
        what = f"A {type(self).__name__} has no attribute {name!r}."
        if name in dir(Dataset):
            what += f" Call {name} on the Dataset before you distribute it."
        raise AttributeError(what, name=name, obj=self)


def replicas_fed_by(dataset: DistributedDataset) -> Replicas:
    """Return the replicas that get the steps of a distributed dataset."""
    return dataset._feed.replicas  # pyright: ignore[reportPrivateUsage]


class DistributedIterator(Iterator):
    """Iterates once over a DistributedDataset. Each step has one part of a batch for every replica.

    A thread prefetches the steps to the devices. It stops with the iterator. Several threads may share an
    iterator; each step goes to one of them.

    Args:
        feed: The source of its steps.
        convert: Converts each value of a step.
    """

    def __init__(self, feed: StepSource, convert: Callable[[Any], Any] | None = None) -> None:
        reading.check_start(self)
        self.made_under = side_effects.here.watcher
        self._owner = Owner()
        self._feed = feed
        self._external_states = feed.external_states()
        self._most_together = feed.most_together
        self._steps = feed.start(convert)
        self._meter = self._steps.meter
        if self._meter is not None:
            self._meter.worker = feed.share.worker, feed.share.workers
            watching.watch(self, self._meter)

    @property
    def element_spec(self) -> Any:
        """The spec of a step."""
        return self._feed.spec()

    def __next__(self) -> Any:
        if reading.instead is not None:
            found = reading.instead(self)
            if found is not None:
                return found
        _check_place()
        self._owner.check()
        return self._steps.take()

    def peek_run(self, most: int, *, fills: bool = False) -> StepRun | None:
        self._owner.check()
        return self._steps.peek(min(most, self._most_together), fills=fills)

    def as_run(self, step: Any, most: int) -> StepRun | None:
        """Return a step that was taken before as `peek_run` with `fills` returns it; None if it is uneven."""
        return self._steps.as_run(step, min(most, self._most_together))

    def take_run(self, run: StepRun) -> bool:
        return self._steps.take_run(run)

    def return_run(self, run: StepRun) -> None:
        self._steps.return_run(run)

    def get_state(self) -> dict[str, Any]:
        """Return the position of all workers after the last step, as JSON-serializable data.

        Prefetched steps do not count. All workers return the same. With `AutoShardPolicy.DATA`, any number of
        workers and replicas can restore it. Unless rows have positions, all workers must call this after the
        same step.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
            >>> iterator = iter(dataset)
            >>> first, state = next(iterator), iterator.get_state()
            >>> again = iter(dataset)
            >>> again.set_state(state)
            >>> [x.array.tolist() for x in again]
            [[4, 5, 6, 7]]

        Raises:
            FailedPreconditionError: A function of the dataset has external state, which is not part of the
                position; see `get_state` of an iterator over the dataset itself. Or the workers are at different
                steps.
            DeadlineExceededError: A worker did not call it in time.
        """
        for external in self._external_states:
            external.check()
        self._owner.check()
        return self._feed.state_of(self._steps)

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue after the step at which `get_state` was called, in this or another process.

        Raises:
            InvalidArgumentError: The state belongs to another dataset, or does not suit this number of workers.
        """
        self._owner.check()
        self._feed.restore(self._steps, state)

    def stats(self) -> DistributedStats:
        """Return how long the steps of this worker waited for data, and what each stage of its pipeline has done.

        Each worker knows its own figures only; `evenfeed run --dashboard` shows those of all workers side by side.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> tf.experimental.enable_stats()
            >>> iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4)))
            >>> tf.experimental.enable_stats(False)
            >>> steps = list(iterator)
            >>> stats = iterator.stats()
            >>> stats.steps, [replica.rows for replica in stats.replicas]
            (2, [4, 4])
            >>> [stage.name for stage in stats.pipelines[0].stages]
            ['range(0, 8)', 'batch(4)']

        Raises:
            FailedPreconditionError: The iterator is not measured.
        """
        return self._measured().stats()

    def explain(self) -> Explanation:
        """Describe the figures of `stats()`: the steps, the replicas, and each stage, and what to change."""
        meter = self._measured()
        return steps_taken_text(meter.stats(), [one.explain() for one in meter.iterators()])

    def _measured(self) -> StepMeter:
        if self._meter is None:
            raise not_measured()
        return self._meter

    def close(self) -> None:
        """Stop the prefetch thread and free its steps."""
        if self._owner.is_here:
            self._steps.close()


@final
class ArrayIterator(DistributedIterator):
    """Iterates once over a DistributedDataset. Each value of a step is one sharded `jax.Array`."""

    def __init__(self, feed: StepSource) -> None:
        super().__init__(feed, partial(array_of, feed.replicas))

    @property
    def element_spec(self) -> Any:
        """The spec of a step, with the specs of its arrays."""
        return array_specs_of(self._feed.spec(), self._feed.replicas)


def _check_place() -> None:
    if contexts.replica_context() is not None:
        raise ValueError(
            described(
                "A replica asked for the next step of a distributed iterator inside run().",
                fix="get it outside run, and pass it: strategy.run(step, args=(next(iterator),)).",
            )
        )


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
    worker, workers = replicas.worker, len(replicas.workers)
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
