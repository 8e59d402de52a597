"""A replica whose function runs as plain Python, in its own thread."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, final

from evenfeed.core.callsite import where_called
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.replicas.reduce.collectives import copies_of_first, means
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.replicas.regrouping import placed, regrouped, share_of
from evenfeed.replicas.replica_context import Replica
from evenfeed.replicas.run.callback_meetings import Seat
from evenfeed.replicas.run.eager_collectives import Join, Sum, bind_collective
from evenfeed.tensors.device_arrays import is_traced, unbound


@cache
def _cache_key_context() -> Any:
    """Return the context that gives each replica its own entries in JAX's caches.

    A jitted user function is traced once per replica, because its closure differs: it may hold the replica's index.
    """
    return jax.make_user_context(default_value=None)  # pyright: ignore[reportAttributeAccessIssue]


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
        return self.replicas.first + self._seat.number

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

    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:
        """Sum in a meeting of the threads; gradients meet in the same way."""
        totals = bind_collective(self._seat, Sum(where_called()), [jnp.asarray(a) for a in arrays])
        return totals if op is ReduceOp.SUM else means(self.replicas.count)(totals)

    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:
        """Concatenate in a meeting of the threads. Lengths along the axis may differ."""
        own = [jnp.asarray(array) for array in arrays]
        axes = tuple(axis if axis < 0 else axis - array.ndim for array in own)
        lengths = [array.shape[axis] for array in own]
        known = own and not any(is_traced(jax.lax.stop_gradient(array)) for array in own)
        every = self._lengths(lengths) if known else [lengths] * self.replicas.count
        by_array = tuple(zip(*every, strict=True))
        return bind_collective(self._seat, Join(where_called(), axes, by_array), own)

    def _lengths(self, own: list[int]) -> Sequence[list[int]]:
        """Exchange the lengths of the replicas' arrays. Not possible inside a compiled program."""

        def exchange(lengths: list[Any]) -> Sequence[Any]:
            received = self.replicas.exchange("the lengths of all_gather", lengths)
            every = [each for worker in received for each in worker]
            return [every] * self.replicas.local_count

        return self._meet(f"all_gather of {len(own)}", own, exchange)

    def from_first(self, array: Any) -> Any:
        if is_traced(array):  # inside a transformation nothing can be assigned: the caller raises
            return array

        def copies(parts: list[Any]) -> Sequence[Any]:
            return copies_of_first(self.replicas, parts)

        own = jnp.asarray(array)
        # Across workers a collective transfers it, which needs one shape.
        description = f"{own.dtype}{list(own.shape)}" if self.replicas.spans else "value"
        return unbound(
            self._meet(f"an assignment of the first replica's {description}", own, copies)
        )

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

        return self._meet("merge_call", (tuple(args), kwargs), merged)

    def _meet(self, what: str, values: Any, resolve: Callable[[list[Any]], Sequence[Any]]) -> Any:
        return self._seat.threads.meet(self.place, what, values, resolve)
