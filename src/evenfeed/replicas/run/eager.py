"""Runs a function as plain Python, in one thread per replica.

The threads take over the caller's JAX settings, because `with jax.enable_x64(True):` and the like hold for one thread
only.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any, Final, final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.containers import opened_call
from evenfeed.replicas.contexts import StrategyLike
from evenfeed.replicas.function.modified_arguments import GivenArguments
from evenfeed.replicas.function.staging import trace_state
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.regrouping import leaves_of, placed, regrouped, share_of
from evenfeed.replicas.replica_context import Replica, Site
from evenfeed.replicas.run.callback_meetings import Seat, assign_seats
from evenfeed.replicas.run.replica_threads import ReplicaThreads
from evenfeed.replicas.worker_parts import check_part_count

# JAX's context managers that change one setting; in `jax.config` each has the prefix `jax_`.
_NAMES: Final = (
    "check_tracer_leaks",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_matmul_precision",
    "default_prng_impl",
    "disable_jit",
    "enable_checks",
    "enable_x64",
    "legacy_prng_key",
    "log_compiles",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "softmax_custom_jvp",
    "threefry_partitionable",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
)


def current_settings() -> Callable[[], AbstractContextManager[Any]]:
    """Return a function that applies this thread's JAX settings to a block in another thread."""
    here = {name: _read(name) for name in _NAMES}

    def apply() -> AbstractContextManager[Any]:
        stack = ExitStack()
        for name, value in here.items():
            if _read(name) != value:
                stack.enter_context(getattr(jax, name)(value))
        return stack

    return apply


def _read(name: str) -> Any:
    return getattr(jax.config, f"jax_{name}")


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
        self._base_trace_state = trace_state()

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
        seat = self._seat
        key = seat.replicas.session.number, seat.slot, seat.number
        with jax.default_device(device), _cache_key_context()(key):
            self._base_trace_state = trace_state()
            yield

    def perform(self, collective: Collective, arrays: Sequence[Any]) -> list[Any]:
        return collective.eager(self._seat, [jnp.asarray(array) for array in arrays])

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if trace_state() != self._base_trace_state:
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


def run_eagerly(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` for each replica as plain Python, in threads that meet at collectives."""
    fn, args, kwargs = opened_call(fn, args, kwargs)
    for leaf in leaves_of((args, kwargs))[0]:
        check_part_count(replicas, leaf)
    threads = ReplicaThreads(replicas)
    whole = GivenArguments(args, kwargs)
    site = Site(strategy, replicas)
    apply_settings = current_settings()

    def call_for(seat: Seat) -> Callable[[], Any]:
        replica = EagerReplica(seat, site.across)

        def call() -> Any:
            share = placed(replicas, share_of((args, kwargs), seat.number), seat.number)
            own_args, own_kwargs = share
            given = GivenArguments(own_args, own_kwargs)
            with apply_settings(), replica.at_work(), site.inside(replica), explain_device_error():
                result = fn(*own_args, **own_kwargs)
            given.check_nothing_added(fn, whole)
            # A program with callbacks needs this run until it has finished.
            return jax.block_until_ready(result) if replicas.session.has_callbacks else result

        return call

    with assign_seats(threads) as seats:
        return regrouped(threads.run([call_for(seat) for seat in seats]), replicas)


@contextmanager
def explain_device_error() -> Generator[None]:
    """Add advice to the error for an array that lies on another replica's device."""
    try:
        yield
    except ValueError as error:
        if "incompatible devices" in str(error):
            error.add_note(
                "A replica's function uses an array on other devices, such as a result of a compiled step. Pass it "
                "through strategy.run(fn, args=(array,)): then each replica gets a copy on its device."
            )
        raise
