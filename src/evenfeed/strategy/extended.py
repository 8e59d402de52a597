"""`StrategyExtended`: what libraries such as optimizers need of a strategy."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from evenfeed.core.conversion import is_tensor, shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.structure import NEST, map_structure
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.reduce.reduce_op import ReduceOp, VariableSynchronization
from evenfeed.replicas.reduce.reduce_op import reduce_op as named
from evenfeed.replicas.reduce.reducing import reduced
from evenfeed.replicas.regrouping import regrouped, share_of
from evenfeed.replicas.run.spmd import own_share
from evenfeed.replicas.values import DistributedValues
from evenfeed.replicas.variables.mirrored_variables import (
    DistributedVariable,
    MirroredVariable,
    SyncOnReadVariable,
)
from evenfeed.replicas.variables.scoped_variables import LoneVariable
from evenfeed.replicas.variables.variable import Variable
from evenfeed.replicas.variables.variable_rules import check_synchronization


class StrategyExtended:
    """What libraries need of a strategy; programs use the strategy itself.

    Args:
        strategy: The strategy.
        replicas: Its replicas.
    """

    def __init__(self, strategy: Any, replicas: Replicas) -> None:
        self._strategy = strategy
        self.replicas = replicas

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The names of the devices that compute for this worker."""
        return tuple(map(self._strategy.device_name, self.replicas.local_devices))

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The names of the devices that hold variables."""
        return self.worker_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: uneven parts work."""
        return False

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each worker's process runs the program by itself, as clients of their own."""
        return self._strategy.cluster_resolver is not None

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process is the one that saves checkpoints."""
        return self._strategy.is_chief

    @property
    def should_save_summary(self) -> bool:
        """Whether this process is the one that writes summaries."""
        return self._strategy.is_chief

    def variable_kind(self, plain: type[Variable], asked: dict[str, Any]) -> type[Variable]:
        """Return the class of a variable that is created in this strategy's scope."""
        if not self._strategy.mirrors:
            return plain
        check_synchronization(asked)
        if self.replicas.count == 1:
            return LoneVariable
        on_read = asked.get("synchronization") is VariableSynchronization.ON_READ
        return SyncOnReadVariable if on_read else MirroredVariable

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Tell whether a variable was created in this strategy's scope."""
        return isinstance(v, Variable) and v.home is self.replicas  # pyright: ignore[reportUnnecessaryIsInstance]

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call a function on each replica, as `Strategy.run` does."""
        return self._strategy.run(fn, args=args, kwargs=kwargs)

    # --- values ----------------------------------------------------------------------------

    def reduce_to(
        self, reduce_op: ReduceOp | str, value: Any, destinations: Any, options: object = None
    ) -> Any:
        """Reduce the parts of a value, or of a nest, and copy the result to where another value lies.

        Args:
            reduce_op: SUM or MEAN.
            value: A per-replica value.
            destinations: A variable or a value of all replicas, for a result that all of them hold; else
                the result lies on the first device.
            options: Taken for compatibility.
        """
        del options
        self._strategy.check_across("reduce_to")
        op = named(reduce_op)

        def reduce_leaf(leaf: Any) -> Any:
            total = reduced(self.replicas, op, leaf, None)
            has_parts = isinstance(leaf, (DistributedValues, DistributedVariable))
            return self.broadcast_to(total, destinations) if has_parts else total

        return map_structure(reduce_leaf, value, rules=NEST)

    def batch_reduce_to(
        self,
        reduce_op: ReduceOp | str,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: object = None,
    ) -> list[Any]:
        """Reduce several values, each to a destination."""
        del options
        return [self.reduce_to(reduce_op, value, to) for value, to in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Copy a tensor to where another value lies: to all replicas, where it is a value of theirs."""
        self._strategy.check_across("broadcast_to")
        everywhere = isinstance(destinations, (DistributedVariable, DistributedValues))
        if self.replicas.count == 1 or not everywhere or not is_tensor(tensor):
            return tensor
        if contexts.staging() is not None:
            return Mirrored(array=cast("jax.Array", tensor), count=self.replicas.count)
        return Mirrored(
            [self.replicas.to_replica(tensor, r) for r in range(self.replicas.local_count)]
        )

    # --- variables -------------------------------------------------------------------------

    def update(
        self,
        var: Variable,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: Any = None,
        group: bool = True,
    ) -> Any:
        """Call a function on each copy of a variable, with the parts of the arguments that belong to it.

        Args:
            var: The variable. What the function assigns to it, it assigns to one copy.
            fn: Called with the variable and the arguments.
            args: Of a per-replica value each call gets its part.
            kwargs: The same, by name.
            group: False returns what the calls on the copies of this worker return, as tuples.

        Returns:
            What the calls return, as a per-replica value.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> with strategy.scope():
            ...     v = tf.Variable(1.0)
            >>> _ = strategy.extended.update(v, lambda copy, x: copy.assign_add(x), args=(2.0,))
            >>> v.numpy().item()
            3.0
        """
        _check_variable(var)
        found = self._update_from(var, fn, (tuple(args), dict(kwargs or {})))
        if group:
            return found
        return map_structure(self._strategy.experimental_local_results, found, rules=NEST)

    def _update_from(self, var: Variable, fn: Callable[..., Any], given: Any) -> Any:
        """Update across replicas, wherever this is called from."""
        context = contexts.replica_context()
        if context is not None and not context.strategy.is_default:

            def merged(*whole: Any, **whole_by_name: Any) -> Any:
                return self._update(var, fn, (whole, whole_by_name))

            return context.replica.merge(merged, *given)
        return self._update(var, fn, given)

    def _update(self, var: Variable, fn: Callable[..., Any], given: Any) -> Any:
        if not isinstance(var, DistributedVariable):
            return self._updated(var, fn, given, 0)
        level = contexts.staging()
        if level is None:
            every = range(self.replicas.local_count)
            return regrouped([self._updated(var, fn, given, r) for r in every], self.replicas)
        if level.within is None:
            return self._strategy.run(_updating(fn, var), args=given[0], kwargs=given[1])
        return self._updated_inside(var, fn, given)

    def _updated(self, var: Variable, fn: Callable[..., Any], given: Any, replica: int) -> Any:
        own_args, own_kwargs = share_of(given, replica)
        with (
            contexts.entered(Frame(self._strategy, self.replicas, updating=replica)),
            jax.default_device(self.replicas.local_devices[replica]),
        ):
            return fn(var, *own_args, **own_kwargs)

    def _updated_inside(self, var: Variable, fn: Callable[..., Any], given: Any) -> Any:
        """Update in a merge_call of mapped code: one call stands for those of all replicas."""
        own_args, own_kwargs = own_share(given)
        with contexts.entered(Frame(self._strategy, self.replicas, updating=0)):
            return fn(var, *own_args, **own_kwargs)

    def value_container(self, value: Any) -> Any:
        """Return the value that a copy belongs to: here values stand for themselves."""
        return value

    @contextmanager
    def colocate_vars_with(self, colocate_with_variable: Variable) -> Generator[None]:
        """Create variables where another one lies; under this strategy they all do."""
        if not self.variable_created_in_scope(colocate_with_variable):
            raise ValueError(
                described(
                    f"{shortened(colocate_with_variable)} is no variable of this strategy's scope.",
                    fix="pass a variable that was created in strategy.scope().",
                )
            )
        yield


def _check_variable(given: object) -> None:
    if not isinstance(given, Variable):
        raise ValueError(
            described(
                f"update changes a variable, but got {shortened(given)}.",
                fix="pass an evenfeed.Variable first, then the function.",
            )
        )


def _updating(fn: Callable[..., Any], var: Variable) -> Callable[..., Any]:
    def update(*args: Any, **kwargs: Any) -> Any:
        level = contexts.frame()
        assert level is not None
        with contexts.entered(Frame(level.strategy, level.replicas, updating=0)):
            return fn(var, *args, **kwargs)

    return update
