"""The mesh of `jax.set_mesh`. A program of a strategy has its own, and JAX refuses to run it inside of another."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from evenfeed.core.lazy_jax import jax, jax_extend_core


def apart_from_context_mesh() -> AbstractContextManager[Any]:
    """Return a context manager in which no mesh of `jax.set_mesh` is set. During a trace it changes nothing."""
    if _current_mesh()().empty or _is_tracing():
        return nullcontext()
    return jax.set_mesh(jax.sharding.Mesh(np.empty((), object), ()))


def run_apart(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return a program that runs outside of the mesh of `jax.set_mesh`."""
    current_mesh = _current_mesh()

    def run(*arrays: Any) -> Any:
        if current_mesh().empty:
            return program(*arrays)
        with apart_from_context_mesh():
            return program(*arrays)

    return run


@cache
def _current_mesh() -> Any:
    # Cached, because the lazy module would look up jax.sharding at each call.
    return jax.sharding.get_abstract_mesh


def _is_tracing() -> bool:
    here = jax_extend_core.get_opaque_trace_state()
    with jax.core.eval_context():
        return here != jax_extend_core.get_opaque_trace_state()
