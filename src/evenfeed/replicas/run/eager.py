"""A replica whose function runs as plain Python, in its own thread."""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.regrouping import placed, regrouped, share_of
from evenfeed.replicas.replica_context import Replica
from evenfeed.replicas.run.callback_meetings import Seat


@cache
def _cache_key_context() -> Any:
    """Return the context that gives each replica its own entries in JAX's caches.

    A jitted user function is traced once per replica, because its closure differs: it may hold the replica's index.
    """
    return jax.make_user_context(default_value=None)


@final
class EagerReplica(Replica):
    """A replica whose function runs as plain Python. It meets the others from its thread.

    Args:
        seat: Where it meets the others.
        across: Enters cross-replica context.
    """

    def __init__(self, seat: Seat, across: Callable[[], AbstractContextManager[None]]) -> None:
        self.replicas = seat.replicas
        self._seat = seat
        self._across = across
        self._base_trace_state = jax_extend_core.get_opaque_trace_state()

    @property
    def index(self) -> int:
        return self._seat.index

    @property
    def place(self) -> int:
        """The index among this worker's replicas."""
        return self._seat.number

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Make JAX compute on this replica's device, with its own cache entries."""
        device = self.replicas.local_devices[self.place]
        with jax.default_device(device), _cache_key_context()(self._seat):
            self._base_trace_state = jax_extend_core.get_opaque_trace_state()
            yield

    def perform(self, collective: Collective, arrays: Sequence[Any]) -> list[Any]:
        return collective.eager(self._seat, [jnp.asarray(array) for array in arrays])

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if jax_extend_core.get_opaque_trace_state() != self._base_trace_state:
            raise ValueError(
                described(
                    "merge_call was called inside a function that JAX transforms (grad, jit, scan, cond or "
                    "vmap), where the values of the other replicas are not available.",
                    fix="call merge_call outside of it; inside, use all_reduce or all_gather.",
                )
            )

        def merged(values: list[Any]) -> Sequence[Any]:
            whole_args, whole_kwargs = regrouped(values, self.replicas)
            with self._across(), jax.default_device(self.replicas.local_devices[0]):
                result = function(*whole_args, **whole_kwargs)
            every = range(self.replicas.local_count)
            return [placed(self.replicas, share_of(result, r), r) for r in every]

        return self._seat.meet("merge_call", (tuple(args), kwargs), merged)
