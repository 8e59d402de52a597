"""`ReplicaContext`, the API inside `Strategy.run`, and `Replica`, the contract behind it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from evenfeed.core.errors import UnimplementedError
from evenfeed.core.lazy_jax import jax, jax_tree
from evenfeed.core.randomness.seeds import calling
from evenfeed.core.structure import NEST, flatten
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.all_gather import AllGather
from evenfeed.replicas.collectives.all_reduce import AllReduce
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.containers import close_containers, open_containers
from evenfeed.replicas.contexts import Frame, StrategyLike
from evenfeed.replicas.key_orders import with_order
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.replicas.reduce.reduce_op import reduce_op as named
from evenfeed.replicas.reduce.reduced_slices import is_slices, reduced_slices
from evenfeed.replicas.regrouping import leaves_of, packed
from evenfeed.tensors.creation import convert_to_tensor


@contextmanager
def noted(note: str) -> Generator[None]:
    """Add a note to an exception from a user function."""
    try:
        yield
    except Exception as error:
        error.add_note(note)
        raise


@contextmanager
def drawing_for(replicas: Replicas) -> Generator[None]:
    """Draw other random numbers for each replica in a block that is traced for all of them."""
    outer, calling.replica_index = calling.replica_index, partial(jax.lax.axis_index, replicas.axis)
    try:
        yield
    finally:
        calling.replica_index = outer


class Replica(ABC):
    """A running replica. Each way to run replicas has a subclass."""

    replicas: Replicas

    @property
    @abstractmethod
    def index(self) -> Any:
        """The global index of the replica: an int, or a tensor in a compiled function."""

    @property
    def place(self) -> int:
        """The index among this worker's replicas, if the code runs for one of them."""
        return 0

    @abstractmethod
    def perform(self, collective: Collective, arrays: Sequence[Any]) -> list[Any]:
        """Perform a collective on this replica's arrays. Return its results."""

    @abstractmethod
    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call `function` once, across replicas, with all replicas' arguments. Return this replica's part."""


@final
class Alone(Replica):
    """The only replica of a strategy. Its collectives return their arguments."""

    def __init__(
        self, replicas: Replicas, across: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.replicas = replicas
        self._across = across

    @property
    def index(self) -> int:
        return 0

    def perform(self, collective: Collective, arrays: Sequence[Any]) -> list[Any]:
        del collective
        return list(arrays)

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        with self._across():
            return function(*args, **kwargs)


@final
@dataclass(frozen=True, slots=True)
class Site:
    """A strategy and its replicas, for entering their contexts."""

    strategy: StrategyLike
    replicas: Replicas

    def inside(self, replica: Replica) -> AbstractContextManager[None]:
        """Return a context manager that enters the context of one replica."""
        context = ReplicaContext(self.strategy, replica)
        return contexts.entered(Frame(self.strategy, self.replicas, context))

    def across(self) -> AbstractContextManager[None]:
        """Return a context manager that enters the cross-replica context."""
        return contexts.entered(Frame(self.strategy, self.replicas))


class ReplicaContext:
    """The context of one replica inside `Strategy.run`. `evenfeed.distribute.get_replica_context()` returns it.

    Args:
        strategy: The strategy.
        replica: The running replica, which performs the collectives.
    """

    def __init__(self, strategy: StrategyLike, replica: Replica) -> None:
        self._strategy = strategy
        self.replica = replica

    @property
    def strategy(self) -> Any:
        """The strategy."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas, over all workers."""
        return self.replica.replicas.count

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The index of this replica, from 0. In a compiled function it is a tensor."""
        index = self.replica.index
        # As in TensorFlow, it is a tensor if there are several workers.
        return convert_to_tensor(index) if self.replica.replicas.spans else index

    @property
    def devices(self) -> tuple[str, ...]:
        """The name of this replica's device. In a compiled function, the names of all replicas' devices."""
        index = self.replica.index
        every = self._strategy.devices
        return (every[index],) if isinstance(index, int) else every

    def all_reduce(self, reduce_op: ReduceOp | str, value: Any, options: object = None) -> Any:
        """Return the sum or mean of a value over all replicas. Every replica must call it.

        Args:
            reduce_op: SUM or MEAN.
            value: A tensor, or a structure of tensors, which is reduced in one collective. IndexedSlices become
                the slices of all replicas.
            options: Accepted for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> def step():
            ...     context = tf.distribute.get_replica_context()
            ...     return context.all_reduce("SUM", tf.constant(2.0))
            >>> [float(part) for part in strategy.experimental_local_results(strategy.run(step))]
            [4.0, 4.0]
        """
        del options
        op = named(reduce_op)
        leaves, tree = jax_tree.tree_flatten(value, is_leaf=is_slices)
        if not any(map(is_slices, leaves)):
            return self._perform(AllReduce(op), value)
        dense = [leaf for leaf in leaves if not is_slices(leaf)]
        rest = iter(self._perform(AllReduce(op), dense))
        perform, count = self.replica.perform, self.replica.replicas.count
        found = [
            reduced_slices(perform, count, op, leaf) if is_slices(leaf) else next(rest)
            for leaf in leaves
        ]
        return packed(with_order(tree, value), found)

    def all_gather(self, value: Any, axis: int, options: object = None) -> Any:
        """Return the tensors of all replicas, concatenated along an axis. Every replica must call it.

        Args:
            value: A tensor, or a structure of tensors. Lengths along the axis may differ.
            axis: The axis. Each tensor must have it.
            options: Accepted for compatibility.
        """
        del options
        if any(map(is_slices, flatten(value, NEST))):
            raise UnimplementedError(
                "all_gather does not support IndexedSlices.",
                fix="gather their tensors: all_gather((slices.values, slices.indices), axis=0).",
            )
        return self._perform(AllGather(axis), value)

    def _perform(self, collective: Collective, value: Any) -> Any:
        """Perform a collective on all tensors of a structure at once."""
        leaves, tree = leaves_of(open_containers(value))
        tensors: list[Any] = [convert_to_tensor(leaf) for leaf in leaves]
        for tensor in tensors:
            collective.check(tensor)
        return close_containers(packed(tree, self.replica.perform(collective, tensors)))

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Call a function once, in the cross-replica context. Every replica must call it.

        Args:
            merge_fn: Called with the strategy and the arguments of all replicas, as per-replica values.
            args: This replica's positional arguments.
            kwargs: This replica's keyword arguments.

        Returns:
            This replica's part of the function's result.
        """

        def merged(*whole: Any, **named: Any) -> Any:
            return merge_fn(self._strategy, *whole, **named)

        return self.replica.merge(merged, tuple(args), kwargs or {})
