"""`StrategyExtended`: the API of a strategy for libraries such as optimizers."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from evenfeed.core.conversion import is_tensor, shortened
from evenfeed.core.errors import described
from evenfeed.core.iteration import Iterator
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
)
from evenfeed.replicas.variables.scoped_variables import LoneVariable, check_synchronization
from evenfeed.replicas.variables.shared_variables import SharedVariable
from evenfeed.replicas.variables.sync_on_read_variables import SyncOnReadVariable
from evenfeed.replicas.variables.variable import Variable
from evenfeed.strategy.multi_step import MultiStepContext, run_steps_on_iterator

if TYPE_CHECKING:
    from evenfeed.strategy.strategy import Strategy


class StrategyExtended:
    """The additional API of a strategy for libraries. Programs use the strategy itself.

    Args:
        strategy: The strategy.
        replicas: Its replicas.
    """

    def __init__(self, strategy: "Strategy", replicas: Replicas) -> None:
        self._strategy = strategy
        self.replicas = replicas

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The names of this worker's devices."""
        return tuple(map(self._strategy.device_name, self.replicas.local_devices))

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The names of the devices that hold variables."""
        return self.worker_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Always False: the parts of a value may have different shapes."""
        return False

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each worker runs its own copy of the program."""
        return self._strategy.cluster_resolver is not None

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process saves checkpoints."""
        return self._strategy.is_chief

    @property
    def should_save_summary(self) -> bool:
        """Whether this process writes summaries."""
        return self._strategy.is_chief

    def variable_kind(self, plain: type[Variable], asked: dict[str, Any]) -> type[Variable]:
        """Return the class for a new variable in this strategy's scope."""
        if not self._strategy.mirrors:
            return plain
        check_synchronization(asked)
        if self.replicas.is_lone:
            return LoneVariable
        on_read = asked.get("synchronization") is VariableSynchronization.ON_READ
        kind = SharedVariable if self._strategy.shares_variables else MirroredVariable
        return SyncOnReadVariable if on_read else kind

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Return True if a variable was created in this strategy's scope."""
        return isinstance(v, Variable) and v.home is self.replicas  # pyright: ignore[reportUnnecessaryIsInstance]

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call a function on each replica, as `Strategy.run` does."""
        return self._strategy.run(fn, args=args, kwargs=kwargs)

    def experimental_run_steps_on_iterator(
        self,
        fn: Callable[..., Any],
        iterator: Iterator,
        iterations: int = 1,
        initial_loop_values: dict[str, Any] | None = None,
    ) -> MultiStepContext:
        """Run a step of TensorFlow 1 several times, in one compiled program (see `Strategy.run_steps`).

        Args:
            fn: Called across replicas with a MultiStepContext and a batch.
            iterator: An iterator over a distributed dataset.
            iterations: The number of steps.
            initial_loop_values: The outputs before the first step.

        Raises:
            OutOfRangeError: The data ended before. The steps until then have been run.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(12).batch(4))
            >>> def step(context, batch):
            ...     sums = strategy.run(tf.reduce_sum, args=(batch,))
            ...     context.set_last_step_output("sum", sums, tf.distribute.ReduceOp.SUM)
            >>> done = strategy.extended.experimental_run_steps_on_iterator(step, iterator, iterations=3)
            >>> int(done.last_step_outputs["sum"])
            38
        """
        return run_steps_on_iterator(self._strategy, fn, iterator, iterations, initial_loop_values)

    # --- values ----------------------------------------------------------------------------

    def reduce_to(
        self, reduce_op: ReduceOp | str, value: Any, destinations: Any, options: object = None
    ) -> Any:
        """Reduce a per-replica value, or a structure of them, and copy the result to a destination.

        Args:
            reduce_op: SUM or MEAN.
            value: A per-replica value.
            destinations: If this is a distributed variable or value, the result is copied to all replicas.
                Otherwise it stays on the first device.
            options: Accepted for compatibility.
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
        """Reduce several values, each to its own destination."""
        del options
        return [self.reduce_to(reduce_op, value, to) for value, to in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Copy a tensor to all replicas if `destinations` is a distributed value or variable."""
        self._strategy.check_across("broadcast_to")
        everywhere = isinstance(destinations, (DistributedVariable, DistributedValues))
        if self.replicas.is_lone or not everywhere or not is_tensor(tensor):
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
        """Call a function on each copy of a variable.

        Args:
            var: The variable. Each call assigns to one copy only.
            fn: Called with the variable and the arguments.
            args: Positional arguments. Each call gets its own part of a per-replica value.
            kwargs: Keyword arguments, handled the same way.
            group: If False, return the results for this worker's copies as tuples.

        Returns:
            The results of the calls, as a per-replica value.

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
        """Run the update in the cross-replica context, entering it if called by a replica."""
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
        """Update in a merge_call of SPMD code, where one call stands for all replicas."""
        own_args, own_kwargs = own_share(self.replicas, given)
        with contexts.entered(Frame(self._strategy, self.replicas, updating=0)):
            return fn(var, *own_args, **own_kwargs)

    def read_var(self, v: Variable) -> Any:
        """Return the value of a variable: copies that are synchronized on read are aggregated."""
        self._strategy.check_across("read_var")
        return v.read_value()

    def value_container(self, value: Any) -> Any:
        """Return the container of a value, which here is the value itself."""
        return value

    @contextmanager
    def colocate_vars_with(self, colocate_with_variable: Variable) -> Generator[None]:
        """Create variables on the devices of another one. A strategy's variables always share devices."""
        if not self.variable_created_in_scope(colocate_with_variable):
            raise ValueError(
                described(
                    f"{shortened(colocate_with_variable)} was not created in this strategy's scope.",
                    fix="pass a variable that was created in strategy.scope().",
                )
            )
        yield


def _check_variable(given: object) -> None:
    if not isinstance(given, Variable):
        raise ValueError(
            described(
                f"var must be a variable, but got {shortened(given)}.",
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
