"""A replica's function while it runs to create its variables, in a trace that is thrown away."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from typing import Any, final

from evenfeed.core.jax_door import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduction import ReduceOp
from evenfeed.replicas.regrouping import leaves_of, packed, share_of
from evenfeed.replicas.replica import Replica
from evenfeed.replicas.replica_context import Site
from evenfeed.replicas.staging import Staging
from evenfeed.replicas.values import PerReplica


@final
class CreatingReplica(Replica):
    """Stands for all replicas: what the others bring has the shape of its own.

    There is no mesh here, so that all that needs no argument can be computed: a variable starts from it.
    """

    def __init__(self, site: Site) -> None:
        self.replicas: Replicas = site.replicas
        self._site = site

    @property
    def index(self) -> Any:
        """Return which one, as a tensor."""
        return jnp.int32(0)

    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:
        """Return the arrays."""
        del op
        return list(arrays)

    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:
        """Return each array as often as there are replicas."""
        return [jnp.concatenate([array] * self.replicas.count, axis) for array in arrays]

    def from_first(self, array: Any) -> Any:
        """Return the array."""
        return array

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the function."""
        whole_args, whole_kwargs = self.for_all((tuple(args), kwargs))
        with self._site.across():
            return share_of(function(*whole_args, **whole_kwargs), 0)

    def for_all(self, result: Any) -> Any:
        """Return a result as if all replicas had returned it."""
        leaves, tree = leaves_of(result)
        count = self.replicas.count
        return packed(
            tree, [PerReplica([x] * count) if isinstance(x, jax.Array) else x for x in leaves]
        )


def run_creating(site: Site, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function for one replica, so that it creates its variables."""
    replica, replicas = CreatingReplica(site), site.replicas
    outer: Staging = contexts.staging()
    own = {
        v: x[0] if getattr(v, "replicas", None) is replicas else x for v, x in outer.values.items()
    }
    own_args, own_kwargs = share_of((args, kwargs), 0)
    with site.inside(replica), contexts.staged(Staging(own, replicas, creates=True)):
        return replica.for_all(function(*own_args, **own_kwargs))
