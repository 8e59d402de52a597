"""Programs over the devices of all replicas, which collectives run."""

from collections.abc import Callable
from functools import partial
from typing import Any

from evenfeed.core.concurrency.peers import MEETING_ERRORS
from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.mesh import Replicas


def unfolded(replicas: Replicas, arrays: Any) -> Any:
    """Keep XLA from constant-folding arrays before a collective over several workers.

    A constant of a traced function may differ between workers. XLA replaces a collective on a constant
    with arithmetic: the result would be wrong, and workers without a constant there would deadlock.
    """
    return jax.lax.optimization_barrier(arrays) if replicas.spans else arrays


def mapped_over(replicas: Replicas, function: Callable[..., Any]) -> Callable[..., Any]:
    """Map a function over the replicas. Its arguments and results are sharded along their first axis."""
    return replicas.mapped(function, replicas.spec, replicas.spec)


def run_together(replicas: Replicas, program: Callable[[Any], Any], arrays: Any) -> Any:
    """Run a program on all devices. With several workers, wait for its results, so that a failure surfaces here."""
    if not replicas.spans:
        return program(arrays)
    try:
        return jax.block_until_ready(program(arrays))
    except MEETING_ERRORS as error:
        replicas.session.peers.reraise(error)


def held_by_all(replicas: Replicas, array: Any) -> Any:
    """Gather an array that is sharded over the replicas, on this worker's first device."""
    program = replicas.session.program("copy", partial(_copy_program, replicas))
    return run_together(replicas, program, array).addressable_data(0)


def _copy_program(replicas: Replicas) -> Callable[..., Any]:
    def same(array: Any) -> Any:
        return array

    return jax.jit(same, out_shardings=replicas.replicated)
