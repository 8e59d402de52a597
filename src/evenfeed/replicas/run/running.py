"""`Strategy.run` for one function: decides how the replicas run it, and runs it.

`run_on_replicas` is the entry. During a trace of an `evenfeed.function`, the replicas are added to that trace; if it
only creates variables, one replica runs for all (`run_creating`). If no trace is active, but `fn` or its caller is an
`evenfeed.function`, the step is compiled (`compiled_run`). All else, and steps that cannot be compiled, run as plain
Python in one thread per replica (`run_eagerly`). These threads take over the caller's JAX settings
(`current_settings`), because `with jax.enable_x64(True):` and the like hold for one thread only.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from threading import Lock
from typing import Any, Final, final

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.containers import call_closed, has_containers, open_containers
from evenfeed.replicas.contexts import StrategyLike
from evenfeed.replicas.function.closures import (
    HOLE,
    NotComparable,
    closed_over,
    identity,
    replaced,
    with_swapped,
)
from evenfeed.replicas.function.compiler import Compiler
from evenfeed.replicas.function.function import Function, compiled_function
from evenfeed.replicas.function.modified_arguments import GivenArguments
from evenfeed.replicas.function.nnx_objects import is_nnx_object, nnx_objects_in, with_nnx_objects
from evenfeed.replicas.function.plain_python import mode, warn_not_compiled
from evenfeed.replicas.function.staging import Staging, Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.regrouping import leaves_of, packed, placed, regrouped, share_of
from evenfeed.replicas.replica_context import Alone, Replica, Site
from evenfeed.replicas.run.callback_meetings import Seat, assign_seats
from evenfeed.replicas.run.eager import EagerReplica
from evenfeed.replicas.run.replica_threads import ReplicaThreads
from evenfeed.replicas.run.spmd import run_mapped
from evenfeed.replicas.run.uneven import run_uneven
from evenfeed.replicas.values import PerReplica
from evenfeed.replicas.worker_parts import check_part_count, of_all_workers

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


@final
class CreatingReplica(Replica):
    """Stands for all replicas: the others are assumed to have equal values.

    There is no mesh here, so whatever needs no argument is concrete: variables are initialized from it.
    """

    def __init__(self, site: Site) -> None:
        self.replicas: Replicas = site.replicas
        self._site = site

    @property
    def index(self) -> Any:
        return jnp.int32(0)

    def perform(self, collective: Collective, arrays: Sequence[Any]) -> list[Any]:
        return collective.if_equal([jnp.asarray(array) for array in arrays], self.replicas.count)

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the function with values that stand for those of all replicas."""
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
    outer = contexts.here.stagings[-1]
    own = {
        v: x[0] if getattr(v, "replicas", None) is replicas else x for v, x in outer.values.items()
    }
    own_args, own_kwargs = share_of((args, kwargs), 0)
    with site.inside(replica), contexts.staged(Staging(own, replicas, creates=True)):
        return replica.for_all(function(*own_args, **own_kwargs))


_MAX_STEPS: Final = 256
_lock: Final = Lock()


def compiled_run(  # noqa: PLR0913, PLR0917 - a run and its owner
    owner: Function,
    strategy: StrategyLike,
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    fallback: Callable[..., Any],
) -> Any:
    """Run a function on the replicas as a compiled program, or call `fallback` if it cannot be compiled.

    A function that is redefined at each call counts as the same one if its code and its closure are the same. Arrays
    in its closure are arguments of the program.

    The programs belong to `owner`: `fn` itself, or the `evenfeed.function` that calls `run`. Globals and attributes
    that the Python code reads are constants of a program, so a new owner must read them again.
    """
    arrays: list[Any] = []
    try:
        key = (strategy, identity(fn, arrays))
    except NotComparable:
        return fallback(strategy, strategy.extended.replicas, fn, args, kwargs)
    compiler = _compiler(owner, key, fn, len(arrays))
    if compiler is not None:
        traces = compiler.traces
        try:
            result = compiler((arrays, *args), kwargs, contexts.frame())
            if compiler.traces != traces:
                _remember_after_trace(owner, compiler, key, fn, len(arrays))
            return result
        except Unstaged as reason:
            if reason.always:
                owner.steps[key] = None
                warn_not_compiled(f"{_name(fn)} runs as plain Python on each replica", reason)
    return fallback(strategy, strategy.extended.replicas, fn, args, kwargs)


def _compiler(owner: Function, key: Any, fn: Callable[..., Any], arrays: int) -> Compiler | None:
    steps = owner.steps
    with _lock:
        if key in steps:
            steps.move_to_end(key)
            return steps[key]
        strategy = key[0]
        # Without its arrays, else those of the first call would stay in memory.
        template = replaced(fn, [HOLE] * arrays)

        def run(own: list[Any], *args: Any, **kwargs: Any) -> Any:
            return strategy.run(replaced(template, own), args=args, kwargs=kwargs)

        run.__name__ = _name(fn)
        compiler = steps[key] = Compiler(run)
        if len(steps) > _MAX_STEPS:
            steps.popitem(last=False)
        return compiler


def _remember_after_trace(
    owner: Function, compiler: Compiler, key: Any, fn: Callable[..., Any], count: int
) -> None:
    """Recognize a function after its trace, which may have changed its closure, such as by appending to a list."""
    arrays: list[Any] = []
    try:
        after = (key[0], identity(fn, arrays))
    except NotComparable:
        return
    if after != key and len(arrays) == count:
        with _lock:
            owner.steps[after] = compiler


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


def run_on_replicas(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` on each replica, and regroup the results."""
    if replicas.count == 1:
        return _run_on_one(strategy, replicas, fn, args, kwargs)
    run = _runner_for(fn)
    objects = nnx_objects_in((args, kwargs), lambda: closed_over(fn, is_nnx_object))
    if objects is None:
        return run(strategy, replicas, fn, *_of_all_workers(replicas, args, kwargs))
    called = with_nnx_objects(with_swapped(fn, objects.hole_for), with_swapped)
    rest = _of_all_workers(replicas, *objects.without((args, kwargs)))
    result, after = run(strategy, replicas, called, (objects.split, *rest), {})
    return objects.take_back(result, after, replicas)


def _of_all_workers(replicas: Replicas, args: Any, kwargs: Any) -> tuple[Any, Any]:
    if not replicas.spans:
        return args, kwargs
    leaves, tree = leaves_of((args, kwargs))
    return packed(tree, [of_all_workers(replicas, leaf) for leaf in leaves])


def _runner_for(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs a function on several replicas: in the current trace, compiled, or as plain Python."""
    staging = contexts.staging()
    if staging is not None:
        return _traced
    driving = contexts.here.driving
    owner = compiled_function(fn) if driving is None else driving
    return run_eagerly if mode.eager or owner is None else partial(_compiled, owner)


def _traced(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` on each replica inside the current trace."""
    staging = contexts.here.stagings[-1]
    run = run_creating if staging.creates else run_uneven if staging.uneven else run_mapped
    return run(Site(strategy, replicas), *_with_containers(fn, args, kwargs))


def _with_containers(
    fn: Callable[..., Any], args: Any, kwargs: Any
) -> tuple[Callable[..., Any], Any, Any]:
    """Convert a call so that JAX can flatten its arguments."""
    if not has_containers((args, kwargs)):
        return fn, args, kwargs
    return partial(call_closed, fn), *open_containers((args, kwargs))


def _compiled(  # noqa: PLR0913, PLR0917 - a run and its owner
    owner: Function,
    strategy: StrategyLike,
    replicas: Replicas,
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
) -> Any:
    del replicas
    return compiled_run(owner, strategy, fn, args, kwargs, run_eagerly)


def run_eagerly(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` for each replica as plain Python, in threads that meet at collectives."""
    fn, args, kwargs = _with_containers(fn, args, kwargs)
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


def _run_on_one(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    site = Site(strategy, replicas)
    with site.inside(Alone(replicas, site.across)):
        if contexts.staging() is not None:
            contexts.here.stagings[0].device = replicas.devices[0]
            return fn(*args, **kwargs)
        with jax.default_device(replicas.devices[0]):
            return fn(*args, **kwargs)
