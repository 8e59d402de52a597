"""Chooses how a function runs on the replicas: as plain Python, or compiled."""

from collections.abc import Callable
from typing import Any

from evenfeed.core.jax_door import jax
from evenfeed.replicas import contexts, in_programs
from evenfeed.replicas.apart import run_apart
from evenfeed.replicas.crew import Crew
from evenfeed.replicas.eager import EagerReplica
from evenfeed.replicas.function import Function
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.regrouping import regrouped, share_of
from evenfeed.replicas.replica import Alone
from evenfeed.replicas.replica_context import Site
from evenfeed.replicas.spmd import run_mapped
from evenfeed.replicas.steps import compiled_run

_jax: Any = jax  # whose functions have no types


def run_on_replicas(
    strategy: Any, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` on each replica, and join what they return."""
    staging = contexts.staging()
    if replicas.count == 1:
        return _alone(strategy, replicas, fn, args, kwargs)
    if staging is not None:
        run = run_apart if staging.apart else run_mapped
        return run(Site(strategy, replicas), fn, args, kwargs)
    if isinstance(fn, Function) or contexts.here.driving:
        return compiled_run(strategy, fn, args, kwargs, run_eagerly)
    return run_eagerly(strategy, replicas, fn, args, kwargs)


def run_eagerly(
    strategy: Any, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Call `fn` for each replica as plain Python, in threads that meet."""
    crew = Crew(replicas)
    site = Site(strategy, replicas)

    def call_for(number: int) -> Callable[[], Any]:
        replica = EagerReplica(crew, number, site.across)

        def call() -> Any:
            own_args, own_kwargs = share_of((args, kwargs), number)
            with site.inside(replica):
                result = fn(*own_args, **own_kwargs)
            # A program that calls back needs this run until it has ended.
            return _jax.block_until_ready(result) if in_programs.used(replicas) else result

        return call

    with in_programs.board_of(crew):
        return regrouped(crew.run([call_for(number) for number in range(replicas.count)]))


def _alone(
    strategy: Any, replicas: Replicas, fn: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    site = Site(strategy, replicas)
    with site.inside(Alone(replicas, site.across)):
        if contexts.staging() is not None:
            return fn(*args, **kwargs)
        with jax.default_device(replicas.devices[0]):
            return fn(*args, **kwargs)
