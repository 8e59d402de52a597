"""One replica of a function that runs as plain Python."""

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
from evenfeed.replicas.run.eager_collectives import Join, Sum, together
from evenfeed.replicas.run.in_programs import Seat
from evenfeed.tensors.placement import is_traced, unbound


@cache
def _mark() -> Any:
    """Return the context that keeps JAX's caches of the replicas apart.

    A function that a user jits is traced once for each replica: what it closes over, such as the
    replica's number, differs.
    """
    return jax.make_user_context(default_value=None)  # pyright: ignore[reportAttributeAccessIssue]


@final
class EagerReplica(Replica):
    """A replica whose function is plain Python: it meets the others in its thread.

    Args:
        seat: Where it meets them.
        across: Makes a block run across replicas.
    """

    def __init__(self, seat: Seat, across: Callable[[], AbstractContextManager[None]]) -> None:
        self.replicas = seat.replicas
        self._seat = seat
        self._across = across
        self._rest = jax_extend_core.get_opaque_trace_state()

    @property
    def index(self) -> int:
        """Return its number among those of all workers."""
        return self.replicas.first + self._seat.number

    @property
    def place(self) -> int:
        """Return its number among those of this worker."""
        return self._seat.number

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Let JAX compute on this replica's device in a block, with caches of its own."""
        device = self.replicas.local_devices[self.place]
        with jax.default_device(device), _mark()(self._seat):
            self._rest = jax_extend_core.get_opaque_trace_state()
            yield

    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:
        """Meet the others; gradients meet in the same way."""
        totals = together(self._seat, Sum(where_called()), [jnp.asarray(a) for a in arrays])
        return totals if op is ReduceOp.SUM else means(self.replicas.count)(totals)

    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:
        """Meet the others, whose arrays may have other lengths along the axis."""
        own = [jnp.asarray(array) for array in arrays]
        axes = tuple(axis if axis < 0 else axis - array.ndim for array in own)
        lengths = [array.shape[axis] for array in own]
        known = own and not any(is_traced(jax.lax.stop_gradient(array)) for array in own)
        every = self._lengths(lengths) if known else [lengths] * self.replicas.count
        by_array = tuple(zip(*every, strict=True))
        return together(self._seat, Join(where_called(), axes, by_array), own)

    def _lengths(self, own: list[int]) -> Sequence[list[int]]:
        """Tell the others how long this replica's arrays are. Inside of a program nobody would be there."""

        def everybody(lengths: list[Any]) -> Sequence[Any]:
            heard = self.replicas.told("the lengths of all_gather", lengths)
            every = [each for worker in heard for each in worker]
            return [every] * self.replicas.local_count

        return self._meet(f"all_gather of {len(own)}", own, everybody)

    def from_first(self, array: Any) -> Any:
        """Meet the others, and take what replica 0 brings."""
        if is_traced(
            array
        ):  # in a transformation, where nothing can be assigned: refused by who asked
            return array

        def copies(parts: list[Any]) -> Sequence[Any]:
            return copies_of_first(self.replicas, parts)

        own = jnp.asarray(array)
        # Over workers a collective brings it, which needs one shape.
        said = f"{own.dtype}{list(own.shape)}" if self.replicas.spans else "value"
        return unbound(self._meet(f"an assignment of the first replica's {said}", own, copies))

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Meet the others, and call the function once across replicas."""
        if jax_extend_core.get_opaque_trace_state() != self._rest:
            raise ValueError(
                described(
                    "merge_call stands inside a function that JAX transforms (grad, jit, scan, cond or "
                    "vmap), where the values of the other replicas are not there.",
                    fix="call merge_call outside of it; inside, use all_reduce or all_gather.",
                )
            )

        def merged(brought: list[Any]) -> Sequence[Any]:
            whole_args, whole_kwargs = regrouped(brought, self.replicas)
            with self._across(), jax.default_device(self.replicas.local_devices[0]):
                result = function(*whole_args, **whole_kwargs)
            every = range(self.replicas.local_count)
            return [placed(self.replicas, share_of(result, r), r) for r in every]

        return self._meet("merge_call", (tuple(args), kwargs), merged)

    def _meet(self, what: str, brought: Any, resolve: Callable[[list[Any]], Sequence[Any]]) -> Any:
        return self._seat.crew.meet(self.place, what, brought, resolve)
