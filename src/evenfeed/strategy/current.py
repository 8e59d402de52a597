"""The current strategy and replica context, and the default strategy.

The default strategy is current when the program has not chosen one. It has one replica, on JAX's default
device.
"""

from contextlib import nullcontext
from functools import cache, cached_property
from typing import Any, ClassVar, cast, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributed_dataset import checked_dataset
from evenfeed.feeding.input_options import InputContext, input_options
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.replica_context import Alone, ReplicaContext, Site
from evenfeed.strategy.followers import followers
from evenfeed.strategy.strategy import Strategy


@final
class DefaultStrategy(Strategy):
    """One replica on JAX's default device. Functions run unchanged."""

    is_default: ClassVar[bool] = True
    mirrors: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(Replicas.on(jax.devices()[:1]))

    @cached_property
    def _context(self) -> ReplicaContext:
        site = Site(self, self.extended.replicas)
        return ReplicaContext(self, Alone(site.replicas, site.across))

    def replica_context(self) -> ReplicaContext:
        """Return the context of its only replica."""
        return self._context

    def experimental_distribute_dataset(self, dataset: Any, options: object = None) -> Any:
        """Return the dataset unchanged, because there is only one replica."""
        input_options(options)
        return checked_dataset(dataset, Dataset)

    def distribute_datasets_from_function(self, dataset_fn: Any, options: object = None) -> Any:
        """Return the dataset that the function returns, unchanged."""
        input_options(options)
        return checked_dataset(dataset_fn(InputContext()), Dataset)

    def scope(self) -> Any:
        """Return a context that changes nothing, because the default strategy is already current."""
        self.check_current()
        return nullcontext(self)


@cache
def default_strategy() -> DefaultStrategy:
    """Return the default strategy. The first call starts JAX's backend."""
    return DefaultStrategy()


def get_strategy() -> Strategy:
    """Return the strategy whose `scope` or `run` the code is in, or else the default strategy."""
    level = contexts.frame()
    return default_strategy() if level is None else cast("Strategy", level.strategy)


def has_strategy() -> bool:
    """Return True if the code is in the `scope` or `run` of a strategy other than the default one."""
    level = contexts.frame()
    return level is not None and not level.strategy.is_default


def in_cross_replica_context() -> bool:
    """Return True if the code runs once for all replicas of a strategy, as in its scope."""
    level = contexts.frame()
    return level is not None and level.context is None


def get_replica_context() -> ReplicaContext | None:
    """Return the context of the running replica, or None in a cross-replica context.

    Outside any strategy, this is the context of the default strategy's only replica.
    """
    level = contexts.frame()
    return default_strategy().replica_context() if level is None else level.context


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make a strategy current from here on, without a `with` block. None resets it.

    Raises:
        RuntimeError: The call is inside `scope()` or `run()`.
    """
    if contexts.here.frames:
        raise RuntimeError(
            described(
                "experimental_set_strategy: Must not be called inside a `tf.distribute.Strategy` scope, nor inside run().",
                fix="call it earlier, or use only `with strategy.scope():`.",
            )
        )
    if strategy is not None and not isinstance(strategy, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            described(
                f"strategy must be a Strategy, but got {shortened(strategy)}.",
                fix="pass a strategy, or None.",
            )
        )
    chosen: Frame | None = None
    if strategy is not None and strategy is not default_strategy():
        chosen = Frame(strategy, strategy.extended.replicas)
    contexts.here.chosen = chosen
    followers.notify()
