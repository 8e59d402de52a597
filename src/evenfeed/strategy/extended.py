"""`StrategyExtended`: what libraries such as optimizers need of a strategy."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from evenfeed.core.jax_door import jax
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_variables import (
    DistributedVariable,
    MirroredVariable,
    SyncOnReadVariable,
)
from evenfeed.replicas.reducing import reduced
from evenfeed.replicas.reduction import ReduceOp, VariableSynchronization
from evenfeed.replicas.reduction import reduce_op as named
from evenfeed.replicas.regrouping import regrouped, share_of
from evenfeed.replicas.values import DistributedValues, Mirrored
from evenfeed.replicas.variables import Variable
from evenfeed.strategy.devices import device_string


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
        """The names of the devices that compute."""
        return tuple(map(device_string, self.replicas.devices))

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The names of the devices that hold variables."""
        return self.worker_devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: uneven parts work."""
        return False

    def variable_kind(self, plain: type[Variable], asked: dict[str, Any]) -> type[Variable]:
        """Return the class of a variable that is created in this strategy's scope."""
        if self.replicas.count == 1:
            return plain
        on_read = asked.get("synchronization") is VariableSynchronization.ON_READ
        return SyncOnReadVariable if on_read else MirroredVariable

    def variable_created_in_scope(self, v: Variable) -> bool:
        """Tell whether a variable was created in this strategy's scope."""
        return getattr(v, "replicas", None) is self.replicas

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call a function on each replica, as `Strategy.run` does."""
        return self._strategy.run(fn, args=args, kwargs=kwargs)

    def reduce_to(
        self, reduce_op: ReduceOp | str, value: Any, destinations: Any, options: object = None
    ) -> Any:
        """Reduce the parts of a value, and copy the result to where another value lies."""
        del options
        return self.broadcast_to(
            reduced(self.replicas, named(reduce_op), value, None), destinations
        )

    def batch_reduce_to(
        self,
        reduce_op: ReduceOp | str,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: object = None,
    ) -> list[Any]:
        """Reduce several values."""
        del options
        return [self.reduce_to(reduce_op, value, to) for value, to in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """Copy a tensor to where another value lies: to all replicas, where it is a value of theirs."""
        if self.replicas.count == 1 or not isinstance(
            destinations, (DistributedVariable, DistributedValues)
        ):
            return tensor
        if contexts.staging() is not None:
            return Mirrored(array=tensor, count=self.replicas.count)
        return Mirrored([self.replicas.to_replica(tensor, r) for r in range(self.replicas.count)])

    def update(
        self,
        var: Variable,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: Any = None,
        group: bool = True,
    ) -> Any:
        """Call a function on each copy of a variable, with the parts of the arguments that belong to it."""
        given = (tuple(args), dict(kwargs or {}))
        if not isinstance(var, DistributedVariable):
            own_args, own_kwargs = share_of(given, 0)
            return fn(var, *own_args, **own_kwargs)
        level = contexts.staging()
        if level is not None and level.within is None:
            return self._strategy.run(_updating(fn, var), args=given[0], kwargs=given[1])
        results = [self._updated(var, fn, given, r) for r in range(self.replicas.count)]
        return None if group else regrouped(results)

    def _updated(self, var: Variable, fn: Callable[..., Any], given: Any, replica: int) -> Any:
        own_args, own_kwargs = share_of(given, replica)
        level = Frame(self._strategy, self.replicas, updating=replica)
        with contexts.entered(level), jax.default_device(self.replicas.devices[replica]):
            return fn(var, *own_args, **own_kwargs)

    def value_container(self, value: Any) -> Any:
        """Return the value that a copy belongs to: here values stand for themselves."""
        return value

    @contextmanager
    def colocate_vars_with(self, colocate_with_variable: Variable) -> Generator[None]:
        """Create variables where another one lies; under this strategy they all do."""
        del colocate_with_variable
        yield


def _updating(fn: Callable[..., Any], var: Variable) -> Callable[..., Any]:
    def update(*args: Any, **kwargs: Any) -> Any:
        level = contexts.frame()
        assert level is not None
        with contexts.entered(Frame(level.strategy, level.replicas, updating=0)):
            return fn(var, *args, **kwargs)

    return update
