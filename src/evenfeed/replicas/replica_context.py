"""What one replica can do while its function runs: meet the others."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.replicas import contexts
from evenfeed.replicas.containers import close_containers, open_containers
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.replicas.reduce.reduce_op import reduce_op as named
from evenfeed.replicas.regrouping import leaves_of, packed
from evenfeed.tensors.creation import convert_to_tensor


@contextmanager
def noted(note: str) -> Generator[None]:
    """Add a note to an error of the user's function."""
    try:
        yield
    except Exception as error:
        error.add_note(note)
        raise


class Replica(ABC):
    """One replica of a function that runs."""

    replicas: Replicas

    @property
    @abstractmethod
    def index(self) -> Any:
        """Which one: a number, or a tensor in a compiled function."""

    @property
    def place(self) -> int:
        """Which of this worker's, where code runs for one of them."""
        return 0

    @abstractmethod
    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:
        """Return the sums or means of what all replicas pass, in one collective."""

    @abstractmethod
    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:
        """Return what all replicas pass, joined along an axis."""

    @abstractmethod
    def from_first(self, array: Any) -> Any:
        """Return what replica 0 passes."""

    @abstractmethod
    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call `function` once, across replicas, with what all pass, and return this one's share."""


@final
class Alone(Replica):
    """The only replica: it meets nobody."""

    def __init__(
        self, replicas: Replicas, across: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.replicas = replicas
        self._across = across

    @property
    def index(self) -> int:
        """Return 0."""
        return 0

    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - of one, either
        """Return the arrays."""
        return list(arrays)

    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:  # noqa: ARG002 - there is one
        """Return the arrays."""
        return list(arrays)

    def from_first(self, array: Any) -> Any:
        """Return the array."""
        return array

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the function."""
        with self._across():
            return function(*args, **kwargs)


@final
@dataclass(frozen=True, slots=True)
class Site:
    """Where a function runs: a strategy and its replicas."""

    strategy: Any
    replicas: Replicas

    def inside(self, replica: Replica) -> AbstractContextManager[None]:
        """Let a block run for one replica."""
        context = ReplicaContext(self.strategy, replica)
        return contexts.entered(Frame(self.strategy, self.replicas, context))

    def across(self) -> AbstractContextManager[None]:
        """Let a block run across replicas."""
        return contexts.entered(Frame(self.strategy, self.replicas))


class ReplicaContext:
    """One replica while its function runs. Got by `evenfeed.distribute.get_replica_context()`.

    Args:
        strategy: The strategy.
        replica: Meets the others.
    """

    def __init__(self, strategy: Any, replica: Replica) -> None:
        self._strategy = strategy
        self.replica = replica

    @property
    def strategy(self) -> Any:
        """The strategy."""
        return self._strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        return self.replica.replicas.count

    @property
    def replica_id_in_sync_group(self) -> Any:
        """Which replica this is, counted from 0: in a compiled function a tensor."""
        index = self.replica.index
        # As in TensorFlow, a tensor where there are several workers.
        return convert_to_tensor(index) if self.replica.replicas.spans else index

    @property
    def devices(self) -> tuple[str, ...]:
        """The name of this replica's device; in a compiled function, of those of all replicas."""
        index = self.replica.index
        every: tuple[str, ...] = self._strategy.devices
        return (every[index],) if isinstance(index, int) else every

    def all_reduce(self, reduce_op: ReduceOp | str, value: Any, options: object = None) -> Any:
        """Return the sum or the mean of what all replicas pass; all of them must call it.

        Args:
            reduce_op: SUM or MEAN.
            value: A tensor, or a nest of them, which is reduced in one collective.
            options: Taken for compatibility.

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
        leaves, tree = leaves_of(open_containers(value))
        tensors: list[Any] = [convert_to_tensor(leaf) for leaf in leaves]
        for tensor in tensors:
            if tensor.dtype.kind in "bOSU":
                raise InvalidArgumentError(
                    f"Numbers can be reduced, but a tensor is {tensor.dtype.name}.",
                    fix="cast it first: evenfeed.cast(x, evenfeed.int32).",
                )
        return close_containers(packed(tree, self.replica.all_reduce(op, tensors)))

    def all_gather(self, value: Any, axis: int, options: object = None) -> Any:
        """Return what all replicas pass, joined along an axis, along which the lengths may differ.

        Args:
            value: A tensor, or a nest of them.
            axis: Which one; it must exist.
            options: Taken for compatibility.
        """
        del options
        leaves, tree = leaves_of(open_containers(value))
        tensors: list[Any] = [convert_to_tensor(leaf) for leaf in leaves]
        for tensor in tensors:
            if tensor.dtype.kind in "OSU":
                raise InvalidArgumentError(
                    "Text stays on the host, and replicas do not meet there.",
                    fix="return it, and join the parts outside of run with strategy.gather.",
                )
            if not -tensor.ndim <= axis < tensor.ndim:
                raise ValueError(
                    described(
                        f"A tensor of the shape {tensor.shape} has no axis {shortened(axis)} to be joined along.",
                        fix="give it an axis with jax.numpy.expand_dims(x, 0).",
                    )
                )
        return close_containers(packed(tree, self.replica.all_gather(tensors, axis)))

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Call a function once, across replicas, with what all of them pass.

        Args:
            merge_fn: Called with the strategy, and the arguments of all replicas as per-replica values.
            args: This replica's.
            kwargs: This replica's, by name.

        Returns:
            This replica's share of what the function returns.
        """

        def merged(*whole: Any, **named: Any) -> Any:
            return merge_fn(self._strategy, *whole, **named)

        return self.replica.merge(merged, tuple(args), kwargs or {})
