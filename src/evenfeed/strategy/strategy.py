"""`Strategy`, the base class of all strategies, with `RunOptions` and `ValueContext`."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ContextDecorator
from typing import Any, ClassVar, NamedTuple, cast, final

import numpy as np

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import described
from evenfeed.core.iteration import Iterator
from evenfeed.core.lazy_jax import jax
from evenfeed.core.structure import NEST, map_structure
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributed_dataset import distributed, distributed_from_function
from evenfeed.feeding.input_options import InputContext, input_options
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.local_parts import local_parts
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.replicas.reduce.reduce_op import reduce_op as named
from evenfeed.replicas.reduce.reducing import gathered, reduced
from evenfeed.replicas.reduce.valid_rows import reduced_valid
from evenfeed.replicas.run.loops_of_steps import StepResults, run_steps
from evenfeed.replicas.run.running import run_on_replicas
from evenfeed.replicas.values import PerReplica
from evenfeed.strategy.devices import device_string
from evenfeed.strategy.extended import StrategyExtended
from evenfeed.strategy.followers import followers
from evenfeed.strategy.older_methods import OlderMethods
from evenfeed.tensors.device_arrays import is_traced


class RunOptions(NamedTuple):
    """Options of `Strategy.run`, accepted for compatibility and ignored.

    Replicas may have parts of different lengths without them: JAX compiles one program per shape.
    """

    #: Whether the batch size may change.
    experimental_enable_dynamic_batch_size: bool = True
    #: Whether to pad dynamic lengths to a few fixed ones.
    experimental_bucketizing_dynamic_shape: bool = False
    #: XLA options.
    experimental_xla_options: Any = None


class Strategy(OlderMethods):
    """Runs a computation on several replicas in sync. The base class of all strategies.

    Args:
        replicas: The replicas and their devices.
    """

    is_default: ClassVar[bool] = False
    mirrors: ClassVar[bool] = True  # variables created in its scope have a copy on each replica
    shares_variables: ClassVar[bool] = False  # or one value for all replicas

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._extended = StrategyExtended(self, replicas)

    @property
    def extended(self) -> StrategyExtended:
        """The additional API for libraries such as optimizers."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas, over all workers."""
        return self._replicas.count

    @property
    def cluster_resolver(self) -> ClusterResolver | None:
        """The resolver that lists the workers, or None if the strategy only uses this process."""
        return None

    @property
    def is_chief(self) -> bool:
        """Whether this process saves checkpoints for all workers."""
        return True

    @property
    def devices(self) -> tuple[str, ...]:
        """The full names of the replicas' devices, in replica order."""
        return tuple(map(self.device_name, self._replicas.devices))

    def device_name(self, device: Any) -> str:
        """Return the full name of a replica's device."""
        return device_string(device)

    @property
    def mesh(self) -> "jax.sharding.Mesh":
        """The replicas' devices as a JAX mesh: with a single axis, `replica`, unless it is that of a MeshStrategy."""
        return self._replicas.mesh

    def variable_sharding(self, name: str, shape: tuple[int, ...]) -> Any:  # noqa: ARG002 - for subclasses
        """Return how a new variable is split over the axes inside of a replica; None if it is not split."""
        return None

    def sharding(self, *axes: str | None) -> "jax.sharding.NamedSharding":
        """Return a JAX sharding of an array over the replicas' devices.

        Args:
            axes: For each axis of the array, `"replica"` to split it over the replicas, or None. Without
                arguments, every device holds the whole array.

        Examples:
            >>> import jax
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> array = jax.device_put(tf.constant([1.0, 2.0]), strategy.sharding("replica"))
            >>> [shard.data.tolist() for shard in array.addressable_shards]
            [[1.0], [2.0]]
        """
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(*axes))

    def scope(self) -> "AbstractContextManager[Strategy]":
        """Make this strategy current in a `with` block. Variables created there live on its replicas.

        The returned context manager can be entered several times and can be nested in itself.
        """
        return _Scope(self, self._replicas)

    def run(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: object = None
    ) -> Any:
        """Call a function on each replica.

        Inside an `evenfeed.function`, or if `fn` is one, it is compiled once for all replicas. Otherwise it
        runs as plain Python once per replica, and the replicas wait for each other at collectives.

        Args:
            fn: The function.
            args: Its positional arguments. Each replica gets its own part of a per-replica value, and the
                same object for anything else.
            kwargs: Its keyword arguments.
            options: RunOptions, accepted for compatibility.

        Returns:
            The structure that `fn` returns. Each leaf is a per-replica value.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> dataset = tf.data.Dataset.range(4).batch(4)
            >>> for x in strategy.experimental_distribute_dataset(dataset):
            ...     squares = strategy.run(tf.square, args=(x,))
            >>> [part.tolist() for part in strategy.experimental_local_results(squares)]
            [[0, 1], [4, 9]]
        """
        del options
        if not callable(fn):
            raise TypeError(
                described(
                    f"fn must be a function to call on each replica, but got {shortened(fn)}.",
                    fix="pass the function itself, and its arguments with args=(...).",
                )
            )
        if not isinstance(args, (list, tuple)):
            raise ValueError(
                described(
                    f"args must be a tuple, but got {shortened(args)}.", fix="write args=(value,)."
                )
            )
        self.check_across("run")
        self.check_current()
        given = cast("Sequence[Any]", args)
        return run_on_replicas(self, self._replicas, fn, tuple(given), dict(kwargs or {}))

    def run_steps(self, fn: Callable[..., Any], iterator: Iterator, steps: int) -> StepResults:
        """Call a function on each replica for the next steps of an iterator, in one compiled program.

        It is `[strategy.run(fn, args=(next(iterator),)) for _ in range(steps)]`, but the batches go to the devices together.
        Returns fewer results at the end of the data, and none after it.

        Args:
            fn: The function. Its argument is a batch.
            iterator: What `iter` of a distributed dataset returned.
            steps: The most steps to run.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(14).batch(4)))
            >>> while results := strategy.run_steps(lambda x: x * 10, iterator, steps=3):
            ...     print(len(results), results[-1].array.tolist())
            3 [80, 90, 100, 110]
            1 [120, 130]
        """
        self.check_across("run_steps")
        self.check_current()
        return run_steps(self, fn, iterator, steps)

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: Any, valid: Any = None) -> Any:
        """Reduce a per-replica value to a single value.

        Args:
            reduce_op: SUM or MEAN.
            value: A per-replica value.
            axis: None to reduce over the replicas only, or an axis or a tuple of axes to reduce over as
                well. A mean then gives every element the same weight, whichever replica holds it.
            valid: A bool for each row, as in the steps of `InputOptions(pad_partial_batches=True)`. With
                axis 0, rows that are False are left out.
        """
        self.check_across("reduce")
        if valid is not None:
            return reduced_valid(self._replicas, named(reduce_op), value, axis, valid)
        return reduced(self._replicas, named(reduce_op), value, axis)

    def gather(self, value: Any, axis: int) -> Any:
        """Concatenate the parts of a per-replica value along an axis."""
        self.check_across("gather")
        return gathered(self._replicas, value, axis)

    def experimental_distribute_dataset(self, dataset: Dataset, options: object = None) -> Any:
        """Split every global batch of `dataset` over the replicas and copy the parts to their devices.

        Args:
            dataset: A dataset of global batches.
            options: InputOptions.
        """
        return distributed(dataset, self._replicas, input_options(options))

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset], options: object = None
    ) -> Any:
        """Distribute the dataset that a function returns. Each step takes one batch for each replica.

        Args:
            dataset_fn: Called with an InputContext. Returns a dataset of per-replica batches.
            options: InputOptions.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> def dataset_fn(context):
            ...     size = context.get_per_replica_batch_size(4)
            ...     return tf.data.Dataset.range(8).batch(size)
            >>> for x in strategy.distribute_datasets_from_function(dataset_fn):
            ...     print(x.array.tolist())
            [0, 1, 2, 3]
            [4, 5, 6, 7]
        """
        return distributed_from_function(dataset_fn, self._replicas, input_options(options))

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(
        self, value_fn: Callable[["ValueContext"], Any]
    ) -> Any:
        """Make a per-replica value from what a function returns for each replica.

        Args:
            value_fn: Called once for each replica with a ValueContext. Arrays in the result are copied to
                that replica's device. Strings and Python values are kept unchanged.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> def value_fn(context):
            ...     return tf.constant([context.replica_id_in_sync_group * 10])
            >>> value = strategy.experimental_distribute_values_from_function(value_fn)
            >>> strategy.run(lambda x: x + 1, args=(value,)).array.tolist()
            [1, 11]
        """
        if not callable(value_fn):
            raise TypeError(
                described(
                    f"value_fn must be a function of a ValueContext, but got {shortened(value_fn)}.",
                    fix="pass lambda context: value.",
                )
            )
        replicas = self._replicas
        made = [
            self._put_on(value_fn(ValueContext(replica, replicas.count)), r)
            for r, replica in enumerate(replicas.own)
        ]
        if replicas.is_lone:
            return made[0]
        return map_structure(lambda *parts: PerReplica(parts, replicas=replicas), *made, rules=NEST)

    def _put_on(self, value: Any, replica: int) -> Any:
        def placed(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray):
                array = to_array(cast("Array", leaf))
                return self._replicas.put(array, replica, f"the value of replica {replica}")
            if isinstance(leaf, jax.Array) and not is_traced(leaf):
                return self._replicas.to_replica(leaf, replica)
            return leaf

        return map_structure(placed, value, rules=NEST)

    def experimental_local_results(self, value: object) -> tuple[Any, ...]:
        """Return this worker's parts of a per-replica value or structure, in replica order."""
        return local_parts(value, self._replicas.local_count)

    def check_across(self, method: str) -> None:
        """Check that a cross-replica method is not called by a single replica.

        Raises:
            RuntimeError: The code runs inside `run`.
        """
        level = contexts.frame()
        if level is not None and level.context is not None:
            raise RuntimeError(
                described(
                    f"{method} works across replicas, but was called inside a replica.",
                    fix="call it outside the function passed to run; inside, use "
                    "evenfeed.distribute.get_replica_context().all_reduce or all_gather.",
                )
            )

    def check_current(self) -> None:
        """Check that the code is not in the scope of another strategy.

        Raises:
            RuntimeError: Another strategy is current.
        """
        level = contexts.frame()
        if level is not None and level.strategy is not self and not level.strategy.is_default:
            raise RuntimeError(
                described(
                    "Mixing different tf.distribute.Strategy objects: "
                    f"{self!r} is used inside the scope of {level.strategy!r}.",
                    fix="leave that scope before you use another strategy.",
                )
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {', '.join(self.devices)}>"


@final
class _Scope(ContextDecorator, AbstractContextManager[Strategy]):
    """The scope of a strategy. It has no state of its own, so any thread may enter it, repeatedly."""

    def __init__(self, strategy: Strategy, replicas: Replicas) -> None:
        self._strategy = strategy
        self._replicas = replicas

    def __enter__(self) -> Strategy:
        level = contexts.frame()
        if level is not None and level.context is not None and not level.strategy.is_default:
            raise RuntimeError(
                described(
                    "scope() must not be entered inside run().",
                    fix="enter it around strategy.run, and create variables there.",
                )
            )
        self._strategy.check_current()
        contexts.here.frames.append(Frame(self._strategy, self._replicas))
        try:
            followers.notify()
        except BaseException:
            self.__exit__()
            raise
        return self._strategy

    def __exit__(self, *error: object) -> None:
        contexts.here.frames.pop()
        followers.notify()


class ValueContext:
    """Identifies the replica that a `value_fn` is called for."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self) -> str:
        return f"<ValueContext of replica {self.replica_id_in_sync_group} of {self.num_replicas_in_sync}>"
