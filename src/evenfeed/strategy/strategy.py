"""`RunOptions`: what `Strategy.run` can be told."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ContextDecorator
from typing import Any, ClassVar, NamedTuple, cast, final

import numpy as np

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.structure import NEST, flatten, map_structure, opened
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributing import distributed, distributed_from_function
from evenfeed.feeding.input_options import InputContext, input_options
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.replicas.reduce.reduce_op import reduce_op as named
from evenfeed.replicas.reduce.reducing import gathered, reduced
from evenfeed.replicas.run.running import run_on_replicas
from evenfeed.replicas.valid import reduced_valid
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables.variable import Variable
from evenfeed.strategy.devices import device_string
from evenfeed.strategy.extended import StrategyExtended
from evenfeed.tensors.placement import is_traced


class RunOptions(NamedTuple):
    """Options of `Strategy.run`, taken for compatibility.

    Parts whose lengths differ work without them: JAX compiles a program for each shape.
    """

    #: Whether the batch size may change.
    experimental_enable_dynamic_batch_size: bool = True
    #: Whether lengths are padded to a few.
    experimental_bucketizing_dynamic_shape: bool = False
    #: Options of XLA.
    experimental_xla_options: Any = None


class Strategy:
    """Replicas of a computation, in step.

    Args:
        replicas: Their devices.
    """

    is_default: ClassVar[bool] = False
    mirrors: ClassVar[bool] = True  # variables of its scope belong to its replicas

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._extended = StrategyExtended(self, replicas)

    @property
    def extended(self) -> StrategyExtended:
        """What libraries need of a strategy."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        return self._replicas.count

    @property
    def cluster_resolver(self) -> ClusterResolver | None:
        """Says who the workers are; None where all replicas are in this process for sure."""
        return None

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that saves for all."""
        return True

    @property
    def devices(self) -> tuple[str, ...]:
        """The full names of the replicas' devices, in order."""
        return tuple(map(self.device_name, self._replicas.devices))

    def device_name(self, device: Any) -> str:
        """Return the full name of a replica's device."""
        return device_string(device)

    @property
    def mesh(self) -> "jax.sharding.Mesh":
        """The replicas' devices as a JAX mesh with the one axis `replica`."""
        return self._replicas.mesh

    def sharding(self, *axes: str | None) -> "jax.sharding.NamedSharding":
        """Return how an array lies on the replicas' devices.

        Args:
            axes: For each axis of the array `"replica"`, if it is cut over the replicas, or None; without
                any, every device holds the whole array.

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
        """Make this strategy current in a block: variables created there are its replicas'.

        What it returns may be entered several times, also inside itself.
        """
        return _Scope(self, self._replicas)

    def run(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: object = None
    ) -> Any:
        """Call a function on each replica.

        Inside `evenfeed.function`, or where `fn` is one, it is compiled for all replicas at once; else it
        is called for each as plain Python, and the replicas meet at collectives.

        Args:
            fn: The function.
            args: Its arguments. Of a per-replica value each replica gets its part, all else goes to each.
            kwargs: Its arguments by name.
            options: RunOptions, taken for compatibility.

        Returns:
            What the replicas return, leaf by leaf as per-replica values.

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
                    f"run calls a function on each replica, but got {shortened(fn)}.",
                    fix="pass the function itself, and its arguments with args=(...).",
                )
            )
        if not isinstance(args, (list, tuple)):
            raise TypeError(
                described(
                    f"args must be a tuple, but got {shortened(args)}.", fix="write args=(value,)."
                )
            )
        self.check_across("run")
        self.check_current()
        given = cast("Sequence[Any]", args)
        return run_on_replicas(self, self._replicas, fn, tuple(given), dict(kwargs or {}))

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: Any, valid: Any = None) -> Any:
        """Return one value for the parts that the replicas hold.

        Args:
            reduce_op: SUM or MEAN.
            value: A per-replica value.
            axis: None to reduce over the replicas alone; an axis, or a tuple of them, to reduce over these
                too. A mean then weighs every element alike, whichever replica holds it.
            valid: A bool for each row, as steps of `InputOptions(pad_partial_batches=True)` bring it: with
                axis 0, the other rows count nothing.
        """
        self.check_across("reduce")
        if valid is not None:
            return reduced_valid(self._replicas, named(reduce_op), value, axis, valid)
        return reduced(self._replicas, named(reduce_op), value, axis)

    def gather(self, value: Any, axis: int) -> Any:
        """Join the parts that the replicas hold along an axis."""
        self.check_across("gather")
        return gathered(self._replicas, value, axis)

    def experimental_distribute_dataset(self, dataset: Dataset, options: object = None) -> Any:
        """Cut every global batch of `dataset` over the replicas, and bring the parts to them.

        Args:
            dataset: Its batches hold the rows of all replicas.
            options: InputOptions.
        """
        return distributed(dataset, self._replicas, input_options(options))

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset], options: object = None
    ) -> Any:
        """Feed the replicas what a function makes: each step takes one batch for each replica.

        Args:
            dataset_fn: Called with an InputContext; returns a dataset of batches for single replicas.
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
        """Make a per-replica value of what a function returns for each replica.

        Args:
            value_fn: Called once for each replica, with a ValueContext. The arrays in what it returns are
                brought to that replica's device; text and Python's values stay as they are.

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
                    f"A function of a ValueContext is needed, but got {shortened(value_fn)}.",
                    fix="pass lambda context: value.",
                )
            )
        replicas = self._replicas
        made = [
            self._on(value_fn(ValueContext(replicas.first + r, replicas.count)), r)
            for r in range(replicas.local_count)
        ]
        if replicas.count == 1:
            return made[0]
        return map_structure(lambda *parts: PerReplica(parts, replicas=replicas), *made, rules=NEST)

    def _on(self, value: Any, replica: int) -> Any:
        def placed(leaf: Any) -> Any:
            if isinstance(leaf, np.ndarray):
                array = to_array(cast("Array", leaf))
                return self._replicas.put(array, replica, f"the value of replica {replica}")
            if isinstance(leaf, jax.Array) and not is_traced(leaf):
                return self._replicas.to_replica(leaf, replica)
            return leaf

        return map_structure(placed, value, rules=NEST)

    def experimental_local_results(self, value: object) -> tuple[Any, ...]:
        """Return the parts of a per-replica value, or of a structure of them, by replica."""
        if isinstance(value, (DistributedValues, Variable)):
            return value.values
        if opened(value, NEST) is None:
            return (value,)
        count = self._replicas.local_count
        for leaf in flatten(value, NEST):
            _check_parts(leaf, count)
        return tuple(map_structure(_part_of(i), value, rules=NEST) for i in range(count))

    def check_across(self, method: str) -> None:
        """Refuse what works across replicas in the function of one.

        Raises:
            RuntimeError: The code runs inside of `run`.
        """
        level = contexts.frame()
        if level is not None and level.context is not None:
            raise RuntimeError(
                described(
                    f"{method} works across replicas, but the code runs inside of one.",
                    fix="call it outside of the function given to run; inside, use "
                    "evenfeed.distribute.get_replica_context().all_reduce or all_gather.",
                )
            )

    def check_current(self) -> None:
        """Refuse to be used in the scope of another strategy.

        Raises:
            RuntimeError: Another strategy is current.
        """
        level = contexts.frame()
        if level is not None and level.strategy is not self and not level.strategy.is_default:
            raise RuntimeError(
                described(
                    f"{self!r} is used inside of the scope of {level.strategy!r}.",
                    fix="leave one scope before you use another strategy.",
                )
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {', '.join(self.devices)}>"


@final
class _Scope(ContextDecorator, AbstractContextManager[Strategy]):
    """The block of a strategy. It keeps nothing of its own, so any thread may enter it again."""

    def __init__(self, strategy: Strategy, replicas: Replicas) -> None:
        self._strategy = strategy
        self._replicas = replicas

    def __enter__(self) -> Strategy:
        level = contexts.frame()
        if level is not None and level.context is not None and not level.strategy.is_default:
            raise RuntimeError(
                described(
                    "scope() must not be entered inside of run().",
                    fix="enter it around strategy.run, and create variables there.",
                )
            )
        self._strategy.check_current()
        contexts.here.frames.append(Frame(self._strategy, self._replicas))
        return self._strategy

    def __exit__(self, *error: object) -> None:
        contexts.here.frames.pop()


class ValueContext:
    """Which replica a function makes a value for."""

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self) -> str:
        return f"<ValueContext of replica {self.replica_id_in_sync_group} of {self.num_replicas_in_sync}>"


def _check_parts(leaf: object, replicas: int) -> None:
    if isinstance(leaf, DistributedValues) and leaf.part_count != replicas:
        raise InvalidArgumentError(
            f"A value in the structure has {leaf.part_count} parts, but this strategy has {replicas} "
            f"{'replica' if replicas == 1 else 'replicas'}.",
            fix="ask the strategy that the value was made by, or pass the value itself, "
            "outside of a structure.",
        )


def _part_of(replica: int) -> Any:
    def part(leaf: object) -> Any:
        if isinstance(leaf, DistributedValues) or (
            isinstance(leaf, Variable) and len(leaf.values) > 1
        ):
            return leaf.values[replica]
        return leaf

    return part
