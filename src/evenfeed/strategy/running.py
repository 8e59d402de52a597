"""Chooses how a function runs on the replicas: as plain Python, or compiled."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from evenfeed.core.jax_door import jax
from evenfeed.replicas import contexts
from evenfeed.replicas.apart import run_apart
from evenfeed.replicas.closures import closed_over, with_swapped
from evenfeed.replicas.containers import (
    call_closed,
    has_containers,
    open_containers,
)
from evenfeed.replicas.creating import run_creating
from evenfeed.replicas.crew import Crew
from evenfeed.replicas.driving import mode
from evenfeed.replicas.eager import EagerReplica
from evenfeed.replicas.function import compiled_function
from evenfeed.replicas.in_programs import Seat, call_back, seated
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.modified_arguments import GivenArguments
from evenfeed.replicas.nnx_objects import is_nnx_object, nnx_objects_in, with_nnx_objects
from evenfeed.replicas.regrouping import leaves_of, packed, placed, regrouped, share_of
from evenfeed.replicas.replica import Alone
from evenfeed.replicas.replica_context import Site
from evenfeed.replicas.settings import current_settings
from evenfeed.replicas.spmd import run_mapped
from evenfeed.replicas.steps import compiled_run
from evenfeed.replicas.worker_parts import of_all_workers

_jax: Any = jax  # whose functions have no types


def run_on_replicas(
    strategy: Any, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` on each replica, and join what they return."""
    if replicas.count == 1:
        return _alone(strategy, replicas, fn, args, kwargs)
    run = _way(fn)
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


def _way(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs a function on several replicas: traced, compiled, or as plain Python."""
    staging = contexts.staging()
    if staging is not None:
        return _traced
    driving = contexts.here.driving
    owner = compiled_function(fn) if driving is None else driving
    return run_eagerly if mode.eager or owner is None else partial(_compiled, owner)


def _traced(
    strategy: Any, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` on each replica in the function that is being traced."""
    staging = contexts.staging()
    run = run_creating if staging.creates else run_apart if staging.apart else run_mapped
    return run(Site(strategy, replicas), *_with_containers(fn, args, kwargs))


def _with_containers(
    fn: Callable[..., Any], args: Any, kwargs: Any
) -> tuple[Callable[..., Any], Any, Any]:
    """Return a call as one whose arguments JAX can open."""
    if not has_containers((args, kwargs)):
        return fn, args, kwargs
    return partial(call_closed, fn), *open_containers((args, kwargs))


def _compiled(  # noqa: PLR0913, PLR0917 - a run, and whose it is
    owner: Any, strategy: Any, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    del replicas
    return compiled_run(owner, strategy, fn, args, kwargs, run_eagerly)


def run_eagerly(
    strategy: Any, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` for each replica as plain Python, in threads that meet."""
    fn, args, kwargs = _with_containers(fn, args, kwargs)
    crew = Crew(replicas)
    whole = GivenArguments(args, kwargs)
    site = Site(strategy, replicas)
    settings = current_settings()

    def call_for(seat: Seat) -> Callable[[], Any]:
        replica = EagerReplica(seat, site.across)

        def call() -> Any:
            share = placed(replicas, share_of((args, kwargs), seat.number), seat.number)
            own_args, own_kwargs = share
            before = GivenArguments(own_args, own_kwargs)
            with settings(), replica.at_work(), site.inside(replica), helpful():
                result = fn(*own_args, **own_kwargs)
            before.check_nothing_added(fn, whole)
            # A program that calls back needs this run until it has ended.
            return _jax.block_until_ready(result) if call_back(replicas) else result

        return call

    with seated(crew) as seats:
        return regrouped(crew.run([call_for(seat) for seat in seats]), replicas)


@contextmanager
def helpful() -> Generator[None]:
    """Say what to do about an array that lies on another replica's device."""
    try:
        yield
    except ValueError as error:
        if "incompatible devices" in str(error):
            error.add_note(
                "An array that lies on other devices, such as a result of a compiled step, is used in a "
                "replica's function. Pass it through strategy.run(fn, args=(array,)): it is then brought to "
                "each replica's device."
            )
        raise


def _alone(
    strategy: Any, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    site = Site(strategy, replicas)
    with site.inside(Alone(replicas, site.across)):
        if contexts.staging() is not None:
            contexts.here.stagings[0].device = replicas.devices[0]
            return fn(*args, **kwargs)
        with jax.default_device(replicas.devices[0]):
            return fn(*args, **kwargs)
