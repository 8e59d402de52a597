"""`Strategy.run` for one function: decides how the replicas run it, and runs it.

`run_on_replicas` is the entry. During a trace of an `evenfeed.function`, the replicas are added to that trace; if it
only creates variables, one replica runs for all (`run_creating`). If no trace is active, but `fn` or its caller is an
`evenfeed.function`, the step is compiled (`compiled_run`). All else, and steps that cannot be compiled, run as plain
Python in one thread per replica (`run_eagerly`). A single replica needs no thread: `_run_on_one` calls `fn`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.containers import opened_call
from evenfeed.replicas.context_mesh import apart_from_context_mesh
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
from evenfeed.replicas.function.loops.guarded_calls import are_unchanged
from evenfeed.replicas.function.nnx_objects import is_nnx_object, nnx_objects_in, with_nnx_objects
from evenfeed.replicas.function.plain_python import mode, warn_not_compiled
from evenfeed.replicas.function.reachable import Place, reached_places, watching
from evenfeed.replicas.function.staging import InContextMesh, Staging, Unstaged
from evenfeed.replicas.keras_variables.loaded_keras import is_connected
from evenfeed.replicas.keras_variables.replica_state import run_with_state
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.regrouping import leaves_of, packed, share_of
from evenfeed.replicas.replica_context import Alone, Replica, Site
from evenfeed.replicas.run.eager import run_eagerly
from evenfeed.replicas.run.spmd import run_mapped
from evenfeed.replicas.run.uneven import run_uneven
from evenfeed.replicas.tape import reads
from evenfeed.replicas.tape.reads import check_recordable
from evenfeed.replicas.values import PerReplica
from evenfeed.replicas.worker_parts import of_all_workers


@final
class CreatingReplica(Replica):
    """Stands for all replicas: the others are assumed to have equal values.

    It runs outside of the mesh, so values that do not depend on arguments are concrete, and can initialize variables.
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
# What the steps of plain Python code have reached.
_reached: Final[WeakKeyDictionary[Compiler, list[Place]]] = WeakKeyDictionary()


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
    that the Python code reads are constants of a program, so a new owner must read them again. For plain Python code,
    the step is traced again when they change.
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
                if owner in watching:
                    _watch(owner, compiler, key, fn)
            return result
        except Unstaged as reason:
            if reason.always:
                owner.steps[key] = None
                warn_not_compiled(f"{_name(fn)} runs as plain Python on each replica", reason)
    return fallback(strategy, strategy.extended.replicas, fn, args, kwargs)


def _compiler(owner: Function, key: Any, fn: Callable[..., Any], arrays: int) -> Compiler | None:
    steps = owner.steps
    with _lock:
        known = steps.get(key)
        if key in steps and (known is None or are_unchanged(_reached.get(known, ()))):
            steps.move_to_end(key)
            return known
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


def _watch(owner: Function, compiler: Compiler, key: Any, fn: Callable[..., Any]) -> None:
    """Note what a function has reached in its trace; if that is too much, run it as plain Python from now on."""
    try:
        _reached[compiler] = reached_places(fn)
    except Unstaged as reason:
        owner.steps[key] = None
        warn_not_compiled(f"{_name(fn)} runs as plain Python on each replica", reason)


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


def run_on_replicas(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` on each replica, and regroup the results."""
    if not replicas.is_lone:
        with apart_from_context_mesh():
            return _run_on_replicas(strategy, replicas, fn, args, kwargs)
    return _run_on_replicas(strategy, replicas, fn, args, kwargs)


def _run_on_replicas(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    if replicas.is_lone:
        here = contexts.here
        if here.driving is None or here.stagings or mode.eager or reads.here.listeners:
            return _run_on_one(strategy, replicas, fn, args, kwargs)
    else:
        check_recordable("strategy.run")
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
    return _eagerly if mode.eager or owner is None else partial(_compiled, owner)


def _traced(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` on each replica inside the current trace."""
    staging = contexts.here.stagings[-1]
    if not jax.sharding.get_abstract_mesh().empty:
        raise InContextMesh("it runs replicas inside jax.set_mesh", expected=True)
    if staging.uneven:
        _check_one_process(replicas, "An argument has parts of different shapes")
    run = run_creating if staging.creates else run_uneven if staging.uneven else run_mapped

    def on_replicas(function: Callable[..., Any]) -> Any:
        return run(Site(strategy, replicas), *opened_call(function, args, kwargs))

    return run_with_state(on_replicas, fn, replicas) if is_connected() else on_replicas(fn)


def _eagerly(
    strategy: StrategyLike, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` on each replica as plain Python."""
    _check_one_process(replicas, f"{_name(fn)} runs as plain Python")
    if replicas.is_lone:
        return _run_on_one(strategy, replicas, fn, args, kwargs)

    def on_replicas(function: Callable[..., Any]) -> Any:
        return run_eagerly(strategy, replicas, function, args, kwargs)

    return run_with_state(on_replicas, fn, replicas) if is_connected() else on_replicas(fn)


def _check_one_process(replicas: Replicas, what: str) -> None:
    """Raise if a replica would run on its first device only, while other processes have some of its devices."""
    if replicas.has_inner_axes and replicas.spans:
        raise NotImplementedError(
            described(
                f"{what}, but the devices of a replica are in several processes, which run compiled steps only.",
                fix="put evenfeed.function on the step, and pass parts of one shape: choose a batch size that the data axes "
                "divide, with drop_remainder=True or InputOptions(pad_partial_batches=True).",
            )
        )


def _compiled(  # noqa: PLR0913, PLR0917 - a run and its owner
    owner: Function,
    strategy: StrategyLike,
    replicas: Replicas,
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
) -> Any:
    del replicas
    return compiled_run(owner, strategy, fn, args, kwargs, _eagerly)


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
