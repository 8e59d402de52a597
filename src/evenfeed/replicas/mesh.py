"""The replicas of all workers: their device mesh, and copying data to this worker's devices."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.device_arrays import bound, held_dtype, is_x64_on, narrowed

AXIS: Final = "replica"

# Sends a string to all workers, and returns the strings of all workers, in worker order.
Exchange: TypeAlias = Callable[[str], list[str]]


@final
class Replicas:
    """The devices of the replicas, one each, with each worker's devices next to each other.

    A worker can only access its own replicas. Methods number replicas within this worker.

    Args:
        devices: The devices.
        exchange: Exchanges messages with the other workers over the network, if there are any.
        patience: Seconds to wait for another worker's message, or None for the default.
    """

    def __init__(
        self,
        devices: Sequence[Any],
        exchange: Exchange | None = None,
        patience: float | None = None,
    ) -> None:
        self.devices: tuple[Any, ...] = tuple(devices)  # JAX devices have no type stubs
        self._exchange = exchange
        self.patience = patience

    def exchange(self, what: str, data: Any = None) -> list[Any]:
        """Exchange data with all workers at the same point of the program. Return every worker's data.

        Args:
            what: The operation that the workers perform at this point, to detect a mismatch.
            data: This worker's data, JSON-serializable.

        Raises:
            RuntimeError: The workers perform different operations.
            InvalidArgumentError: They perform the same operation on incompatible tensors.
        """
        if self._exchange is None:
            return [data]
        received: list[Any] = [
            json.loads(text) for text in self._exchange(json.dumps([what, data]))
        ]
        places = [place for place, _ in received]
        if len(set(places)) > 1:
            seen = "; ".join(f"worker {worker} at {place}" for worker, place in enumerate(places))
            raise not_met(
                places,
                f"The workers are not at the same point of the program: {seen}.",
                "run the same program on all workers, with the same collectives in the same order.",
            )
        return [each for _, each in received]

    @cached_property
    def local_devices(self) -> tuple[Any, ...]:
        """The devices of this worker."""
        if len({device.process_index for device in self.devices}) < 2:
            return self.devices
        return tuple(d for d in self.devices if d.process_index == jax.process_index())

    @cached_property
    def local_count(self) -> int:
        """The number of this worker's replicas."""
        return len(self.local_devices)

    @cached_property
    def first(self) -> int:
        """The global index of this worker's first replica."""
        return self.devices.index(self.local_devices[0])

    @cached_property
    def spans(self) -> bool:
        """Whether some replicas are on other workers."""
        return self.local_count < self.count

    @property
    def count(self) -> int:
        """The number of replicas, over all workers."""
        return len(self.devices)

    @cached_property
    def device_set(self) -> frozenset[Any]:
        """The devices, to compare with those of an array's sharding."""
        return frozenset(self.devices)

    @cached_property
    def mesh(self) -> "jax.sharding.Mesh":
        """The devices as a mesh with a single axis, `replica`."""
        return jax.sharding.Mesh(np.array(self.devices), (AXIS,))

    @cached_property
    def sharding(self) -> "jax.sharding.NamedSharding":
        """The sharding of a batch: split along its first axis."""
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(AXIS))

    @cached_property
    def replicated(self) -> "jax.sharding.NamedSharding":
        """The sharding of a value that every device holds entirely."""
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec())

    @cached_property
    def shardings(self) -> "frozenset[jax.sharding.Sharding]":
        """The shardings that a program's arrays can have."""
        return frozenset((self.sharding, self.replicated))

    @cached_property
    def _local_shardings(self) -> "tuple[jax.sharding.Sharding, ...]":
        """The devices of this worker, each as a sharding."""
        return tuple(map(jax.sharding.SingleDeviceSharding, self.local_devices))

    def put(self, array: Array, replica: int, what: str) -> Any:
        """Copy an array to the device of one replica. Strings stay on the host."""
        if array.dtype == dtypes.string:
            return array
        return jax.device_put(_owned(narrowed(array, what)), self.local_devices[replica])

    def put_sharded(self, batch: Array, what: str) -> "jax.Array":
        """Copy each replica's rows of a batch to its device, as one sharded array."""
        rows = _owned(narrowed(batch, what))
        return _copied(rows.shape, self.sharding, rows.__getitem__)

    def put_pieces(self, pieces: Sequence[Array], what: str) -> "jax.Array":
        """Copy one piece to each replica's device, as one array. Pieces have the same, non-empty shape."""
        rows = [_owned(narrowed(piece, what)).reshape(pieces[0].shape or 1) for piece in pieces]
        size = len(rows[0])

        def piece(index: Any) -> Array:
            return rows[(index[0].start or 0) // size - self.first]

        return _copied((size * self.count, *rows[0].shape[1:]), self.sharding, piece)

    def put_each(self, pieces: Sequence[Array], what: str) -> list[Any]:
        """Copy one piece to each replica's device, even during a trace."""
        owned = [_owned(narrowed(piece, what)) for piece in pieces]
        pairs = zip(owned, self._local_shardings, strict=True)
        return [_copied(piece.shape, there, lambda _, whole=piece: whole) for piece, there in pairs]

    def everywhere(self, array: Any) -> "jax.Array":
        """Replicate an array on all devices. Returns the array itself if it already is replicated."""
        if not self.spans:
            return jax.device_put(array, self.replicated)
        # device_put would check that all workers pass equal values, but a worker's arguments may be its own.
        return self.held_alike([self.to_replica(array, r) for r in range(self.local_count)])

    def held_alike(self, copies: "Sequence[jax.Array]") -> "jax.Array":
        """Make one replicated array from equal copies that are already on their devices."""
        make: Any = jax.make_array_from_single_device_arrays
        return make(copies[0].shape, self.replicated, list(copies))

    def to_replica(self, array: Any, replica: int) -> Any:
        """Copy an array to the device of one replica. Returns the array itself if it is already there."""
        device = self.local_devices[replica]
        # jax.device_put checks this too, but takes ten times as long.
        if getattr(array, "committed", None) is not None:
            there = array.devices()
            if there == {device}:
                return array if array.committed else bound(array)
            if device in there and array.is_fully_replicated:  # other devices have copies too
                return next(s.data for s in array.addressable_shards if s.device == device)
        return jax.device_put(array, device)

    def joined(self, parts: "Sequence[jax.Array]") -> "jax.Array":
        """Make one sharded array from parts that are already on their devices, without copying.

        All parts must have the same shape, including those of other workers.
        """
        first = parts[0].shape
        shape = (self.count * first[0], *first[1:])
        return jax.make_array_from_single_device_arrays(shape, self.sharding, list(parts))

    def stacked(self, parts: "Sequence[jax.Array]") -> "jax.Array":
        """Stack parts along a new replica axis, as one sharded array."""
        # JAX computes with an uncommitted array on the default device, not on the device that holds it.
        placed = [self.to_replica(part, replica) for replica, part in enumerate(parts)]
        return self.joined([jnp.expand_dims(part, 0) for part in placed])

    def arriving(self, dtype: DType) -> DType:
        """Return the dtype that values of `dtype` have on the devices."""
        return held_dtype(dtype)


@final
class X64Setting:
    """The value of `jax_enable_x64` at creation. JAX keeps that setting per thread and per `with` block."""

    def __init__(self) -> None:
        self._wide = is_x64_on()

    def kept(self) -> AbstractContextManager[Any]:
        """Return a context manager that restores the setting, in any thread."""
        if is_x64_on() == self._wide:
            return nullcontext()
        return jax.enable_x64(self._wide)


def shards(array: "jax.Array") -> tuple[Any, ...]:
    """Return the shards of an array that is split along its first axis, in order."""
    sharding: Any = array.sharding
    mesh = getattr(sharding, "mesh", None)
    if array.size == 0 and mesh is not None:
        # A compiled program returns an empty array whole on every device, whatever its sharding.
        rows = array.shape[0] // mesh.size
        return tuple(shard.data[:rows] for shard in array.addressable_shards)
    if mesh is not None and mesh.axis_names == (AXIS,) and not array.is_fully_replicated:
        # Rows are in mesh order. Looking up the row indices of each shard is slow in JAX.
        return tuple(map(array.addressable_data, range(len(sharding.addressable_devices))))
    found = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    return tuple(shard.data for shard in found)


def not_met(places: Sequence[str], what: str, fix: str) -> Exception:
    """Return the error for replicas or workers that reached different collectives.

    Args:
        places: For each of them, the collective, then " of " and its arguments.
        what: The error message, which lists the places.
        fix: The fix if the collectives differ.
    """
    kinds = {place.partition(" of ")[0] for place in places}
    if len(kinds) > 1:
        return RuntimeError(described(what, fix=fix))
    return InvalidArgumentError(
        what,
        fix="pass tensors of one dtype and shape; for all_gather, lengths along its axis may differ.",
    )


def _copied(
    shape: tuple[int, ...], there: "jax.sharding.Sharding", rows: Callable[[Any], Array]
) -> "jax.Array":
    # Faster than jax.device_put for small batches, and not traced inside a user's jit. The transfer
    # is explicit, so it is allowed even if the user made JAX refuse implicit ones.
    with jax.transfer_guard_host_to_device("allow"):
        return jax.make_array_from_callback(shape, there, rows)


def _owned(array: Array) -> Array:
    """Return an array that nobody else will write to, because JAX may use its memory directly.

    A read-only array is a view of the user's array, which the user may change at any time. On the CPU,
    `may_alias=False` does not keep JAX from sharing it.
    """
    return array if array.flags.writeable else array.copy()
