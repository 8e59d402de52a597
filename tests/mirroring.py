"""Strategies, per-replica values and the two ways to run a function, for tests of replicas."""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import evenfeed as tf

WAYS = ("eager", "compiled")
REPLICAS = (2, 3)

# The tests also run with JAX_ENABLE_X64=1 (tests/replicas/test_running.py).
without_x64 = pytest.mark.skipif(
    jax.config.jax_enable_x64, reason="with 64-bit types on, every value fits"
)


@cache
def mirrored(count: int) -> Any:
    """Return a strategy, always the same one: what JAX compiled for it serves the next test too."""
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)])


def context() -> Any:
    return tf.distribute.get_replica_context()


def number() -> Any:
    return context().replica_id_in_sync_group


def each(strategy: Any, make: Callable[[int], Any]) -> Any:
    """Return a per-replica value of what `make` returns for each replica's number."""
    return strategy.experimental_distribute_values_from_function(
        lambda value_context: make(value_context.replica_id_in_sync_group)
    )


def run(way: str, strategy: Any, fn: Callable[..., Any], *args: Any) -> Any:
    if way == "eager":
        return strategy.run(fn, args=args)
    return tf.function(lambda *given: strategy.run(fn, args=given))(*args)


def parts(strategy: Any, value: Any) -> list[Any]:
    """Return what each replica has: one structure for each, of NumPy arrays and Python's values."""
    leaves, tree = jax.tree.flatten(
        value, is_leaf=lambda leaf: isinstance(leaf, tf.distribute.DistributedValues)
    )
    rows = [_parts_of_leaf(strategy, leaf) for leaf in leaves]
    count = strategy.num_replicas_in_sync
    return [jax.tree.unflatten(tree, [row[r] for row in rows]) for r in range(count)]


def _parts_of_leaf(strategy: Any, leaf: Any) -> list[Any]:
    found = list(strategy.experimental_local_results(leaf))
    if len(found) == 1:
        found *= strategy.num_replicas_in_sync
    return [np.asarray(part) if isinstance(part, jax.Array) else part for part in found]


def replica_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("evenfeed-replica")]
