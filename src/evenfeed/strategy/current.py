"""The strategy where none was chosen: one replica, on JAX's default device."""

from contextlib import nullcontext
from functools import cache, cached_property
from typing import Any, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributing import checked_dataset
from evenfeed.feeding.input_options import InputContext, input_options
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.replica_context import Alone, ReplicaContext, Site
from evenfeed.strategy.strategy import Strategy

_jax: Any = jax  # whose functions have no types


@final
class DefaultStrategy(Strategy):
    """Runs functions as they are."""

    is_default = True
    mirrors = False

    def __init__(self) -> None:
        super().__init__(Replicas((_jax.devices()[0],)))

    @cached_property
    def _context(self) -> ReplicaContext:
        site = Site(self, self.extended.replicas)
        return ReplicaContext(self, Alone(site.replicas, site.across))

    def replica_context(self) -> ReplicaContext:
        """Return the context of its one replica."""
        return self._context

    def experimental_distribute_dataset(self, dataset: Any, options: object = None) -> Any:
        """Return the dataset: there is nobody to share it with."""
        input_options(options)
        return checked_dataset(dataset, Dataset)

    def distribute_datasets_from_function(self, dataset_fn: Any, options: object = None) -> Any:
        """Return what the function makes."""
        input_options(options)
        return checked_dataset(dataset_fn(InputContext()), Dataset)

    def scope(self) -> Any:
        """Change nothing: the default strategy is current already."""
        self.check_current()
        return nullcontext(self)


@cache
def default_strategy() -> DefaultStrategy:
    """Return the default strategy, which starts JAX's backend when it is first asked for."""
    return DefaultStrategy()


def get_strategy() -> Strategy:
    """Return the strategy whose scope or run the code is in, or else the default one."""
    level = contexts.frame()
    return default_strategy() if level is None else level.strategy


def has_strategy() -> bool:
    """Tell whether the code is in the scope or the run of a strategy other than the default one."""
    level = contexts.frame()
    return level is not None and not level.strategy.is_default


def in_cross_replica_context() -> bool:
    """Tell whether the code runs for all replicas of a strategy together, as in its scope."""
    level = contexts.frame()
    return level is not None and level.context is None


def get_replica_context() -> ReplicaContext | None:
    """Return the context of the replica that runs; None across replicas.

    Without a strategy it is that of the default one, which has one replica.
    """
    level = contexts.frame()
    return default_strategy().replica_context() if level is None else level.context


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make a strategy current from here on, without a block; None ends that.

    Raises:
        RuntimeError: The code is inside of a scope.
    """
    if contexts.here.frames:
        raise RuntimeError(
            described(
                "experimental_set_strategy must not be called inside of scope() or run().",
                fix="call it before, or use `with strategy.scope():` alone.",
            )
        )
    if strategy is not None and not isinstance(strategy, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            described(
                f"A strategy is needed, but got {shortened(strategy)}.", fix="pass one, or None."
            )
        )
    chosen: Any = None
    if strategy is not None and strategy is not default_strategy():
        chosen = Frame(strategy, strategy.extended.replicas)
    contexts.here.chosen = chosen
