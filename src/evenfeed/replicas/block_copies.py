"""Copies the blocks of arrays to their devices, also before JAX would find out again which device gets which."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np

from evenfeed.core.concurrency.forked_jax import fork
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.transfers import are_allowed, transfers_allowed

_PUTTING: Final = "jax._src.interpreters.pxla"
_MOST_KINDS: Final = 64
# Of larger arrays, a second copy may not fit on the devices, and the copying takes most of the time.
_MOST_BYTES: Final = 1 << 20


def copied(
    shape: tuple[int, ...], there: "jax.sharding.Sharding", rows: Callable[[Any], Array]
) -> "jax.Array":
    """Make an array whose blocks a function returns, given their indices."""
    # Faster than jax.device_put for small batches, and not traced inside a user's jit.
    with transfers_allowed():
        return jax.make_array_from_callback(shape, there, rows)


@final
class BlockCopies:
    """Copies arrays with one sharding, and remembers for each shape and dtype which device gets which block.

    That takes half the time of `jax.make_array_from_callback`, which finds it out at each call (docs/decisions/devices.md).
    JAX has no public function for the rest of the work. Where the private one is missing or makes another array, the public
    one makes them all.

    Args:
        there: The sharding.
    """

    def __init__(self, there: "jax.sharding.Sharding") -> None:
        self._there = there
        self._known: dict[Any, tuple[Any, Sequence[Any], Sequence[Any]] | None] = {}
        self._put: Any = getattr(sys.modules.get(_PUTTING), "batched_device_put", None)
        # Looked up once: lazy_jax would look it up at each call.
        self._mesh: Any = jax.sharding.get_abstract_mesh

    def __call__(
        self, shape: tuple[int, ...], dtype: DType, rows: Callable[[Any], Array]
    ) -> "jax.Array":
        """Make an array whose blocks a function returns, given their indices. It has a dtype of JAX: see `narrowed`."""
        # Another mesh may be part of an array's type. A fork may not run JAX.
        if not self._mesh().empty or not are_allowed() or fork.of is not None:
            return copied(shape, self._there, rows)
        kind = (shape, dtype)
        known = self._known.get(kind)
        if known is not None:
            aval, devices, blocks = known
            return self._put(aval, self._there, [rows(block) for block in blocks], devices)
        made = copied(shape, self._there, rows)
        is_new = kind not in self._known and len(self._known) < _MOST_KINDS
        if is_new and made.nbytes <= _MOST_BYTES:
            self._known[kind] = self._learned(rows, made)
        return made

    def _learned(
        self, rows: Callable[[Any], Array], made: "jax.Array"
    ) -> tuple[Any, Sequence[Any], Sequence[Any]] | None:
        """Return the type of an array, its devices and their blocks; None if the private function does not make it."""
        if self._put is None:
            return None
        there: Any = self._there
        blocks: dict[Any, Any] = there.addressable_devices_indices_map(made.shape)
        aval, devices, indices = made.aval, list(blocks), list(blocks.values())
        try:
            again = self._put(aval, there, [rows(index) for index in indices], devices)
        except Exception:  # noqa: BLE001 - in another version of JAX, it may be another function
            return None
        return (aval, devices, indices) if _are_same(again, made) else None


def _are_same(one: Any, other: "jax.Array") -> bool:
    if type(one) is not type(other) or (one.aval, one.sharding) != (other.aval, other.sharding):
        return False
    pairs = zip(one.addressable_shards, other.addressable_shards, strict=True)
    return one.committed == other.committed and all(
        a.device == b.device and _bytes(a.data) == _bytes(b.data) for a, b in pairs
    )


def _bytes(array: Any) -> bytes:
    return np.asarray(array).tobytes()
