"""Steps as structures of global `jax.Array`s."""

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
from evenfeed.core.structure import DATA, flatten, map_structure, pack
from evenfeed.dataset import Dataset
from evenfeed.feeding.step_sources import StepSource
from evenfeed.replicas import contexts
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica, PerReplicaSpec
from evenfeed.runtime.explain import Explanation


def arrays_of(replicas: Replicas, step: Any) -> Any:
    """Return a step with one sharded array for each value in it."""
    if isinstance(step, PerReplica):  # many a step is one part: no structure to walk through
        return _array(replicas, step)
    return map_structure(partial(_array, replicas), step, rules=DATA)


def array_specs_of(spec: Any, replicas: Replicas) -> Any:
    """Return the specs of the arrays that the steps with a spec become."""
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


def _array(replicas: Replicas, value: Any) -> Any:
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
        f"A step is not one array: its replicas have {list(shapes)}.",
        fix="pass InputOptions(pad_partial_batches=True), or batch with drop_remainder=True and a size that the "
        "replicas divide.",
    )


def _on_devices(parts: Sequence[Any], replicas: Replicas) -> Any:
    """Return parts of one shape as one array: those of one device, or which are still on the host."""
    if any(part.dtype == dtypes.string for part in parts):
        raise InvalidArgumentError(
            "A step is not one array: a part of it is text, which stays on the host.",
            fix="leave the text out with map, or iterate over the distributed dataset itself.",
        )
    if not parts[0].ndim and replicas.count == 1:
        return replicas.everywhere(parts[0])
    if any(isinstance(part, np.ndarray) for part in parts):
        return replicas.put_pieces([to_array(part) for part in parts], "a step")
    return replicas.joined(parts)


class DistributedDataset:
    """A dataset of which each replica gets its own part at every step.

    Made by `Strategy.experimental_distribute_dataset` and `Strategy.distribute_datasets_from_function`. It can
    be iterated over and says its `element_spec`; what changes the data belongs on the Dataset it is made from.

    Args:
        feed: Where its steps come from.
    """

    def __init__(self, feed: StepSource) -> None:
        self._feed = feed
        feed.spec()  # what cannot be cut is refused here and now

    @property
    def element_spec(self) -> Any:
        """The specs of what a step yields, a PerReplicaSpec for each part on several replicas."""
        # Not kept: whether 64 bits arrive depends on JAX's x64, which may be turned on later.
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
            kind = "endless" if size == INFINITE else "not known before it is read"
            raise TypeError(
                described(
                    f"The distributed dataset has no len(): its number of steps is {kind}.",
                    fix="ask its cardinality, which has a value for both cases.",
                )
            )
        return size

    def __bool__(self) -> bool:
        return True  # it is a value, however many steps it has

    def as_array_iterator(self) -> "ArrayIterator":
        """Go through the steps as structures of `jax.Array` that are sharded over the replicas.

        They are ready for a `jax.jit` or `jax.shard_map` of your own. The iterator has `get_state` and
        `set_state`, whose states are those of `iter(dataset)` too.

        Raises:
            InvalidArgumentError: A step is not one array: its parts differ in length, or are text.

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
        """Say which replica gets what at each step, what is read ahead, and how the dataset below runs.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> dataset = tf.data.Dataset.range(9).batch(4)
            >>> strategy.experimental_distribute_dataset(dataset).explain()  # doctest: +ELLIPSIS
            DistributedDataset: 3 steps on 2 replicas of worker 0
              replica 0  CPU:0  2 rows a step: 0-1 of each batch
              replica 1  CPU:1  2 rows a step: 2-3 of each batch
              batches: 4 rows over all replicas, each cut by itself, by ceiling
              last step: 1 row, for each replica 1, 0
              read ahead: 1 step, brought to the devices by a thread
              dataset:
                 1  range(0, 9)  <doctest ...>:1  9 elements  () int64
                 2  batch(4)     <doctest ...>:1  3 elements  (?,) int64
                      elements have no positions from here on: each is made of several
                resume: by position
        """
        return self._feed.explain()

    def __getattr__(self, name: str) -> Any:
        what = f"A DistributedDataset has no {name!r}."
        if name in dir(Dataset):
            what += f" Call {name} on the Dataset, before it is distributed."
        raise AttributeError(what, name=name, obj=self)


class DistributedIterator(Iterator):
    """Goes once through a DistributedDataset; each step is one part of a batch for every replica.

    The steps are read and brought to the devices ahead of time, by a thread that ends with the iterator.
    Several threads may share an iterator: each step goes to one of them.

    Args:
        feed: Where its steps come from.
        form: Makes of a step what is handed out.
    """

    def __init__(self, feed: StepSource, form: Callable[[Any], Any] | None = None) -> None:
        self.made_under = side_effects.here.watcher
        self._owner = Owner()
        self._feed = feed
        self._outside = feed.outside()
        self._form = form
        self._steps = feed.started()

    @property
    def element_spec(self) -> Any:
        """The specs of what a step yields."""
        return self._feed.spec()

    def __next__(self) -> Any:
        if reading.instead is not None:
            found = reading.instead(self)
            if found is not None:
                return found
        _check_place()
        self._owner.check()
        return self._steps.take(self._form)

    def get_state(self) -> dict[str, Any]:
        """Return the position behind the last step, as data that JSON can hold.

        What was brought to the devices ahead of time does not count. The position is one in the dataset: an
        iterator on another number of replicas can take it up.

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
            FailedPreconditionError: A function of the dataset keeps something that a state does not hold;
                see `get_state` of an iterator over the dataset itself.
        """
        for outside in self._outside:
            outside.check()
        self._owner.check()
        return self._feed.state_of(self._steps)

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on behind the step at which `get_state` was called, in this or another process."""
        self._owner.check()
        self._feed.restore(self._steps, state)

    def close(self) -> None:
        """End the thread that reads ahead, and free what it has read."""
        if self._owner.is_here:
            self._steps.close()


@final
class ArrayIterator(DistributedIterator):
    """Goes once through a DistributedDataset; each value of a step is one `jax.Array` over all replicas."""

    def __init__(self, feed: StepSource) -> None:
        super().__init__(feed, partial(arrays_of, feed.replicas))

    @property
    def element_spec(self) -> Any:
        """The specs of the arrays."""
        return array_specs_of(self._feed.spec(), self._feed.replicas)


def _check_place() -> None:
    if contexts.replica_context() is not None:
        raise ValueError(
            described(
                "The next step was asked for inside of run(), by one replica.",
                fix="ask outside, and pass what comes: strategy.run(step, args=(next(iterator),)).",
            )
        )


@final
class InputIterator(Iterator):
    """The steps of a distributed dataset; `initialize()` begins with the first one again.

    Made by `make_dataset_iterator` and `make_input_fn_iterator` of TensorFlow 1's strategies.

    Args:
        dataset: What it reads.

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
        """The specs of what a step yields."""
        return self._dataset.element_spec

    def initialize(self) -> None:
        """Begin again with the first step."""
        self._steps.close()
        self._steps = iter(self._dataset)

    @property
    def initializer(self) -> None:
        """What newer programs of TensorFlow 1 read in place of calling `initialize()`: it begins again too."""
        return self.initialize()

    def __next__(self) -> Any:
        return self._steps.__next__()  # next() would lose the step where Ctrl-C comes behind it
