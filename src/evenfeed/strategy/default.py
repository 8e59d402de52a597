"""The strategy where none was chosen: one replica, on JAX's default device."""

from contextlib import nullcontext
from functools import cache, cached_property
from typing import Any, final

from evenfeed.core.jax_door import jax
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributing import checked_dataset
from evenfeed.feeding.input_options import InputContext, input_options
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.replica import Alone
from evenfeed.replicas.replica_context import ReplicaContext, Site
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
