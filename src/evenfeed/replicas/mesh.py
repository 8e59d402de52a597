"""The replicas of all workers: their devices, and the way of data to those of this one."""

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
from evenfeed.tensors.placement import bound, held_dtype, narrowed

AXIS: Final = "replica"

_jax: Any = jax  # whose device_put has no types

# Says a text to all workers, and returns what each of them said, in their order.
Tell: TypeAlias = Callable[[str], list[str]]


@final
class Replicas:
    """The devices that hold one replica each, in order, those of a worker beside each other.

    A worker reaches its own replicas alone. In the methods they are numbered among themselves.

    Args:
        devices: The devices.
        tell: The way to the other workers, off the devices, where they have some.
        patience: How many seconds workers wait for what another says; None for the default.
    """

    def __init__(
        self, devices: Sequence[Any], tell: Tell | None = None, patience: float | None = None
    ) -> None:
        self.devices: tuple[Any, ...] = tuple(devices)  # JAX's, which have no types
        self._tell = tell
        self.patience = patience

    def told(self, what: str, said: Any = None) -> list[Any]:
        """Say something at a place of the program that all workers come to; return what each said there.

        Args:
            what: What is done there.
            said: Data for JSON.

        Raises:
            RuntimeError: The workers do different things.
            InvalidArgumentError: They do the same thing, on tensors that do not go together.
        """
        if self._tell is None:
            return [said]
        heard: list[Any] = [json.loads(text) for text in self._tell(json.dumps([what, said]))]
        places = [place for place, _ in heard]
        if len(set(places)) > 1:
            seen = "; ".join(f"worker {worker} at {place}" for worker, place in enumerate(places))
            raise not_met(
                places,
                f"The workers do not meet at the same place: {seen}.",
                "let all workers run the same program, with the same collectives in the same order.",
            )
        return [each for _, each in heard]

    @cached_property
    def local_devices(self) -> tuple[Any, ...]:
        """The devices of this worker."""
        if len({device.process_index for device in self.devices}) < 2:
            return self.devices
        return tuple(d for d in self.devices if d.process_index == _jax.process_index())

    @cached_property
    def local_count(self) -> int:
        """How many replicas this worker has."""
        return len(self.local_devices)

    @cached_property
    def first(self) -> int:
        """The number of this worker's first replica among all."""
        return self.devices.index(self.local_devices[0])

    @cached_property
    def spans(self) -> bool:
        """Whether other workers have some of the replicas."""
        return self.local_count < self.count

    @property
    def count(self) -> int:
        """How many replicas there are."""
        return len(self.devices)

    @cached_property
    def mesh(self) -> "jax.sharding.Mesh":
        """The devices as a mesh with the one axis `replica`."""
        return jax.sharding.Mesh(np.array(self.devices), (AXIS,))

    @cached_property
    def sharding(self) -> "jax.sharding.NamedSharding":
        """How a batch lies on the devices: cut along its first axis."""
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(AXIS))

    @cached_property
    def replicated(self) -> "jax.sharding.NamedSharding":
        """How a value lies that every device holds as a whole."""
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec())

    @cached_property
    def shardings(self) -> "frozenset[jax.sharding.Sharding]":
        """The ways in which the arrays of a program lie on the devices."""
        return frozenset((self.sharding, self.replicated))

    def put(self, array: Array, replica: int, what: str) -> Any:
        """Copy an array to the device of one replica; text stays on the host."""
        if array.dtype == dtypes.string:
            return array
        return _jax.device_put(_owned(narrowed(array, what)), self.local_devices[replica])

    def put_sharded(self, batch: Array, what: str) -> "jax.Array":
        """Copy each replica's rows of a batch to its device, as one array."""
        rows = _owned(narrowed(batch, what))
        return self._brought(rows.shape, rows.__getitem__)

    def put_pieces(self, pieces: Sequence[Array], what: str) -> "jax.Array":
        """Copy a piece to the device of each replica, as one array; they are of one shape, and not empty."""
        rows = [_owned(narrowed(piece, what)).reshape(pieces[0].shape or 1) for piece in pieces]
        size = len(rows[0])

        def piece(index: Any) -> Array:
            return rows[(index[0].start or 0) // size - self.first]

        return self._brought((size * self.count, *rows[0].shape[1:]), piece)

    def _brought(self, shape: tuple[int, ...], rows: Callable[[Any], Array]) -> "jax.Array":
        # On small batches quicker than jax.device_put, which also would be traced in a user's jit. A
        # user who lets JAX refuse hidden transfers did ask for this one.
        with _jax.transfer_guard_host_to_device("allow"):
            return _jax.make_array_from_callback(shape, self.sharding, rows)

    def put_each(self, pieces: Sequence[Array], what: str) -> list[Any]:
        """Copy a piece to the device of each replica, also where JAX is tracing."""
        owned = [_owned(narrowed(piece, what)) for piece in pieces]
        with jax.ensure_compile_time_eval():
            return _jax.device_put(owned, list(self.local_devices))

    def everywhere(self, array: Any) -> "jax.Array":
        """Return an array that all devices hold; itself where they do already."""
        if not self.spans:
            return _jax.device_put(array, self.replicated)
        # JAX would compare the values of all workers; what a program is given may be each worker's own.
        return self.held_alike([self.to_replica(array, r) for r in range(self.local_count)])

    def held_alike(self, copies: "Sequence[jax.Array]") -> "jax.Array":
        """Make one array of equal copies that lie on their devices already."""
        make: Any = _jax.make_array_from_single_device_arrays
        return make(copies[0].shape, self.replicated, list(copies))

    def to_replica(self, array: Any, replica: int) -> Any:
        """Return a `jax.Array` on the device of one replica; itself where it lies there."""
        device = self.local_devices[replica]
        # JAX would find that out too, in ten times the time.
        if getattr(array, "committed", None) is not None:
            there = array.devices()
            if there == {device}:
                return array if array.committed else bound(array)
            if device in there and array.is_fully_replicated:  # also where others have copies too
                return next(s.data for s in array.addressable_shards if s.device == device)
        return _jax.device_put(array, device)

    def joined(self, parts: "Sequence[jax.Array]") -> "jax.Array":
        """Make one sharded array of equal parts that lie on their devices already, without a copy.

        Those of other workers belong to it: they must be of the same shape.
        """
        first = parts[0].shape
        shape = (self.count * first[0], *first[1:])
        return _jax.make_array_from_single_device_arrays(shape, self.sharding, list(parts))

    def stacked(self, parts: "Sequence[jax.Array]") -> "jax.Array":
        """Make one array with an axis for the replicas of parts that lie on their devices."""
        # JAX computes with an array that is bound to no device on its default one, not where it lies.
        placed = [self.to_replica(part, replica) for replica, part in enumerate(parts)]
        return self.joined([jnp.expand_dims(part, 0) for part in placed])

    def arriving(self, dtype: DType) -> DType:
        """Return the dtype in which values of `dtype` arrive on the devices."""
        return held_dtype(dtype)


@final
class Width:
    """Whether JAX has 64-bit types where this is made: JAX keeps that setting for each thread and block."""

    def __init__(self) -> None:
        self._wide: bool = _jax.config.read("jax_enable_x64")

    def kept(self) -> AbstractContextManager[Any]:
        """Return a block, also for another thread, in which JAX has what it had."""
        if _jax.config.read("jax_enable_x64") == self._wide:
            return nullcontext()
        return _jax.enable_x64(self._wide)


def shards(array: "jax.Array") -> tuple[Any, ...]:
    """Return what each device holds of an array that is cut along its first axis, in order."""
    sharding: Any = array.sharding
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None and mesh.axis_names == (AXIS,) and not array.is_fully_replicated:
        # The order of the mesh is that of the rows; JAX takes long to say which rows lie where.
        return tuple(map(array.addressable_data, range(len(sharding.addressable_devices))))
    found = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    return tuple(shard.data for shard in found)


def not_met(places: Sequence[str], what: str, fix: str) -> Exception:
    """Return the error for replicas or workers that came to different places.

    Args:
        places: Where they came to: a collective, then " of " and what it is given.
        what: The sentence that lists the places.
        fix: What to do where they are different collectives.
    """
    kinds = {place.partition(" of ")[0] for place in places}
    if len(kinds) > 1:
        return RuntimeError(described(what, fix=fix))
    return InvalidArgumentError(
        what,
        fix="pass tensors of one dtype and shape; those of all_gather may differ in length along its axis.",
    )


def _owned(array: Array) -> Array:
    """Return an array that nobody will write to: JAX may keep it as the memory of its own.

    A read-only array is a view of what the user passed, and the user may write there at any time;
    `may_alias=False` does not keep JAX from sharing it on the CPU.
    """
    return array if array.flags.writeable else array.copy()
