"""`DistributedDataset` and its iterators, over per-replica values or over sharded `jax.Array`s."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.conversion import to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.iteration import Iterator, Owner, reading
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.dataset import Dataset
from evenfeed.feeding.step_sources import StepSource
from evenfeed.replicas import contexts
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica, PerReplicaSpec
from evenfeed.runtime.explain import Explanation


def array_specs_of(spec: Any, replicas: Replicas) -> Any:
    """Return the specs of the values that `array_of` returns, from the spec of a step."""
    return pack(spec, [_array_spec(part, replicas) for part in flatten(spec, DATA)], DATA)


def _array_spec(spec: TypeSpec, replicas: Replicas) -> TypeSpec:
    if not isinstance(spec, PerReplicaSpec):
        return spec
    part = spec.value_specs[0]
    if not isinstance(part, TensorSpec) or part.shape.rank is None:
        return part
    rows = part.shape[0] if part.shape.rank else 1
    whole = TensorShape([None if rows is None else rows * replicas.count])
    return TensorSpec(whole.concatenate(part.shape[1:]), part.dtype)


def array_of(replicas: Replicas, value: Any) -> Any:
    """Return a value of a step as one sharded array."""
    if not isinstance(value, PerReplica):
        return None if value is None else _on_devices([value], replicas)
    if value.parts[0] is None:
        return None
    whole = value.whole
    if whole is not None:
        return whole
    shapes = value.shapes or [getattr(part, "shape", None) for part in value.parts]
    if len(set(shapes)) == 1:
        return _on_devices(value.parts, replicas)
    raise InvalidArgumentError(
        f"A step cannot be one array: its parts have the shapes {list(shapes)}.",
        fix="pass InputOptions(pad_partial_batches=True), or batch with drop_remainder=True and a size that is a "
        "multiple of the number of replicas.",
    )


def _on_devices(parts: Sequence[Any], replicas: Replicas) -> Any:
    """Make one array from parts of one shape, which are on one device or still on the host."""
    if any(part.dtype == dtypes.string for part in parts):
        raise InvalidArgumentError(
            "A step cannot be one array: it has strings, which stay on the host.",
            fix="drop the strings with map, or iterate over the distributed dataset itself.",
        )
    if not parts[0].ndim and replicas.count == 1:
        return replicas.everywhere(parts[0])
    if any(isinstance(part, np.ndarray) for part in parts):
        return replicas.put_pieces([to_array(part) for part in parts], "a step")
    return replicas.joined(parts)


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

    def explain(self) -> Explanation:
        """Describe what each replica gets at each step, what is prefetched, and how the dataset runs.

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
              dataset:
                 1  range(0, 9)  <doctest ...>:1  9 elements  () int64
                 2  batch(4)     <doctest ...>:1  3 elements  (?,) int64
                      read sequentially from here on: each element is made of several
                resume: by position
        """
        return self._feed.explain()

    def __getattr__(self, name: str) -> Any:
        what = f"A DistributedDataset has no attribute {name!r}."
        if name in dir(Dataset):
            what += f" Call {name} on the Dataset before you distribute it."
        raise AttributeError(what, name=name, obj=self)


class DistributedIterator(Iterator):
    """Iterates once over a DistributedDataset. Each step has one part of a batch for every replica.

    A thread prefetches the steps to the devices. It stops with the iterator. Several threads may share an
    iterator; each step goes to one of them.

    Args:
        feed: The source of its steps.
        convert: Converts each value of a step.
    """

    def __init__(self, feed: StepSource, convert: Callable[[Any], Any] | None = None) -> None:
        self.made_under = side_effects.here.watcher
        self._owner = Owner()
        self._feed = feed
        self._external_states = feed.external_states()
        self._steps = feed.start(convert)

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

    def get_state(self) -> dict[str, Any]:
        """Return the position after the last step, as JSON-serializable data.

        Prefetched steps do not count. The position refers to the dataset, so an iterator with another number
        of replicas can restore it.

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
                position; see `get_state` of an iterator over the dataset itself.
        """
        for external in self._external_states:
            external.check()
        self._owner.check()
        return self._feed.state_of(self._steps)

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue after the step at which `get_state` was called, in this or another process."""
        self._owner.check()
        self._feed.restore(self._steps, state)

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


@final
class InputIterator(Iterator):
    """An iterator over a distributed dataset that `initialize()` restarts.

    `make_dataset_iterator` and `make_input_fn_iterator` of TensorFlow 1's strategies return it.

    Args:
        dataset: The dataset to read.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).batch(4))
        >>> iterator.get_next().array.tolist()
        [0, 1, 2, 3]
        >>> iterator.initialize()
        >>> strategy.experimental_run(lambda x: x * 10, iterator).array.tolist()
        [0, 10, 20, 30]
    """

    def __init__(self, dataset: DistributedDataset) -> None:
        self._dataset = dataset
        self._steps = iter(dataset)

    @property
    def element_spec(self) -> Any:
        """The spec of a step."""
        return self._dataset.element_spec

    def initialize(self) -> None:
        """Restart at the first step."""
        self._steps.close()
        self._steps = iter(self._dataset)

    @property
    def initializer(self) -> None:
        """Restart at the first step. Newer TensorFlow 1 programs read this instead of calling `initialize()`."""
        return self.initialize()

    def __next__(self) -> Any:
        return self._steps.__next__()  # with next(), a Ctrl-C right after it would lose the step
