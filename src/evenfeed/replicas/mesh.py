"""The replicas of all workers: their device mesh, and copying data to this worker's devices."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Final, final
from weakref import ref

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.block_copies import BlockCopies, copied
from evenfeed.replicas.device_shards import device_groups, row_axes
from evenfeed.replicas.inner_axes import vectorized
from evenfeed.replicas.owned_arrays import owned
from evenfeed.replicas.session import Session
from evenfeed.replicas.small_copies import SmallCopies
from evenfeed.tensors.device_arrays import bound, held_dtype, is_x64_on, narrowed

_AXIS: Final = "replica"
# Copying more bytes takes longer than an array that shares them.
_MOST_ON_HOST: Final = 1 << 18

# The meshes of strategies, with the newest replicas along each choice of axes, the newest last. JAX itself keeps meshes
# forever.
_known: Final[dict[Any, dict[tuple[str, ...], "ref[Replicas]"]]] = {}


@final
class Replicas:
    """The replicas of all workers: a mesh of their devices, with each worker's devices next to each other.

    A worker can only access its own replicas. Methods number replicas within this worker. A replica has the devices along the
    inner axes of the mesh. A program is compiled for all of them; what is for a single device is on the first.

    Args:
        mesh: The devices.
        axes: The axes of the mesh that replicas differ along, from the outermost; by default all axes. The others are
            inside of a replica.
        session: The state of the strategy; by default a new one.

    Attributes:
        mesh: The same.
        axes: The same.
        axis: The axes as `jax.lax` and `PartitionSpec` take them: the name of a single one, or all names.
        devices: The first device of each replica, in replica order.
        has_inner_axes: Whether replicas have several devices.
        count: The number of replicas, over all workers.
    """

    def __init__(
        self,
        mesh: "jax.sharding.Mesh",
        axes: Sequence[str] | None = None,
        session: Session | None = None,
    ) -> None:
        names: tuple[str, ...] = mesh.axis_names
        self.mesh = mesh
        self.axes = names if axes is None else tuple(axes)
        if (
            not self.axes
            or not set(self.axes) <= set(names)
            or len(set(self.axes)) < len(self.axes)
        ):
            raise InvalidArgumentError(
                f"Replicas must differ along some of the mesh axes {names}, each named once, but got {self.axes}.",
                fix="name axes of the mesh.",
            )
        first, *others = self.axes
        self.axis: str | tuple[str, ...] = self.axes if others else first
        self._groups = device_groups(mesh, self.axes)
        self.devices: tuple[Any, ...] = tuple(self._groups[:, 0])
        self.has_inner_axes: bool = self._groups.shape[1] > 1
        self.count = len(self.devices)
        self._given_session = session
        known = _known.setdefault(mesh, {})
        known.pop(self.axes, None)
        known[self.axes] = ref(self)

    @staticmethod
    def on(devices: Sequence[Any], session: Session | None = None) -> "Replicas":
        """Return one replica for each device. Their mesh has a single axis, `replica`."""
        mesh = jax.sharding.Mesh(np.array(devices), (_AXIS,))
        return Replicas(mesh, session=session)

    @cached_property
    def session(self) -> Session:
        """The state of the strategy."""
        return self._given_session or Session()

    @property
    def axis_env(self) -> list[tuple[str, int]]:
        """The names and sizes of the axes, to trace a function that uses them."""
        return [(name, self.mesh.shape[name]) for name in self.axes]

    @cached_property
    def workers(self) -> tuple[tuple[int, ...], ...]:
        """The replicas with devices on each worker. Workers may share replicas."""
        groups = [{d.process_index for d in group} for group in self._groups]
        processes = sorted(set[int]().union(*groups))
        return tuple(
            tuple(r for r, found in enumerate(groups) if process in found) for process in processes
        )

    @cached_property
    def worker(self) -> int:
        """The index of this worker in `workers`."""
        processes = sorted({device.process_index for device in self._groups.flat})
        return processes.index(jax.process_index()) if len(processes) > 1 else 0

    @property
    def own(self) -> tuple[int, ...]:
        """The global indices of the replicas with devices on this worker."""
        return self.workers[self.worker]

    def own_entries(self, of_all: Sequence[Any]) -> list[Any]:
        """Select this worker's entries from a list with one entry per replica."""
        return [of_all[replica] for replica in self.own]

    def by_replica(self, of_workers: Sequence[Sequence[Any]]) -> list[Any]:
        """Join lists with one entry for each replica of each worker to a list with one entry per replica.

        Raises:
            InvalidArgumentError: Workers that share a replica have different entries for it.
        """
        found: dict[int, Any] = {}
        for replicas, entries in zip(self.workers, of_workers, strict=True):
            for replica, entry in zip(replicas, entries, strict=True):
                if found.setdefault(replica, entry) != entry:
                    raise InvalidArgumentError(
                        f"Workers that share replica {replica} must have the same values for it, but they have "
                        f"{found[replica]} and {entry}.",
                        fix="make them from the number of the replica, not from that of the worker.",
                    )
        return [found[replica] for replica in range(self.count)]

    def _local(self, group: Any) -> list[Any]:
        """Return the devices of a replica on this worker."""
        return [d for d in group if not self.spans or d.process_index == jax.process_index()]

    @cached_property
    def local_devices(self) -> tuple[Any, ...]:
        """The first device on this worker of each of its replicas."""
        return tuple(self._local(self._groups[replica])[0] for replica in self.own)

    @cached_property
    def local_count(self) -> int:
        """The number of this worker's replicas."""
        return len(self.own)

    @cached_property
    def spans(self) -> bool:
        """Whether some devices are on other workers."""
        return len({device.process_index for device in self._groups.flat}) > 1

    @property
    def may_be_shared(self) -> bool:
        """Whether several workers run on a mesh that the user built, where workers may share replicas."""
        return self.spans and self.mesh.axis_names != (_AXIS,)

    @cached_property
    def are_shared(self) -> bool:
        """Whether workers share replicas."""
        return sum(map(len, self.workers)) > self.count

    @property
    def is_lone(self) -> bool:
        """Whether there is a single device."""
        return self.count == 1 and not self.has_inner_axes

    @cached_property
    def device_set(self) -> frozenset[Any]:
        """The devices, to compare with those of an array's sharding."""
        return frozenset(self._groups.flat)

    @cached_property
    def spec(self) -> Any:
        """The `PartitionSpec` of a batch."""
        return jax.sharding.PartitionSpec(self.axis)

    @cached_property
    def sharding(self) -> "jax.sharding.NamedSharding":
        """The sharding of a batch: split along its first axis."""
        return jax.sharding.NamedSharding(self.mesh, self.spec)

    @cached_property
    def steps_sharding(self) -> "jax.sharding.NamedSharding":
        """The sharding of several batches, stacked: split along the second axis."""
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(None, self.axis))

    @cached_property
    def replicated(self) -> "jax.sharding.NamedSharding":
        """The sharding of a value that every device holds entirely."""
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec())

    @cached_property
    def shardings(self) -> "frozenset[jax.sharding.Sharding]":
        """The shardings that a program's arrays can have."""
        return frozenset((self.sharding, self.replicated))

    def laid_out(self, spec: Any) -> "jax.sharding.NamedSharding":
        """Return the sharding of stacked copies, one for each replica, which a `PartitionSpec` splits over inner axes."""
        if spec is None:
            return self.sharding
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(self.axis, *spec))

    def mapped(self, function: Callable[..., Any], in_specs: Any, out_specs: Any) -> Any:
        """Map a function over the replicas. Inner axes are left to XLA."""
        if self.has_inner_axes:
            return vectorized(function, self.mesh, self.axes, in_specs, out_specs)
        # With check_vma=True, gradients through collectives differ from TensorFlow's.
        return jax.shard_map(
            function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
        )

    def gathered(self, array: Any, axis: int = 0, *, tiled: bool = False) -> Any:
        """Gather the arrays of all replicas, in mapped code: along an axis if `tiled`, else stacked along a new first one."""
        if not self.has_inner_axes or len(self.axes) == 1:
            return jax.lax.all_gather(array, self.axis, axis=axis, tiled=tiled)
        shape = array.shape
        for name in reversed(self.axes):  # vmap gathers along one axis at a time
            array = jax.lax.all_gather(array, name, axis=axis, tiled=tiled)
        return array if tiled else array.reshape(self.count, *shape)

    def tracing(self) -> AbstractContextManager[Any]:
        """Return a context manager in which a function is traced for `mapped`: constraints may name the inner axes."""
        if not self.has_inner_axes:
            return nullcontext()
        return jax.sharding.use_abstract_mesh(self.mesh.abstract_mesh)

    @cached_property
    def _local_shardings(self) -> "tuple[jax.sharding.Sharding, ...]":
        """The devices of this worker, each as a sharding."""
        return tuple(map(jax.sharding.SingleDeviceSharding, self.local_devices))

    def put(self, array: Array, replica: int, what: str) -> Any:
        """Copy an array to the device of one replica. Strings stay on the host."""
        if array.dtype == dtypes.string:
            return array
        return jax.device_put(owned(narrowed(array, what)), self.local_devices[replica])

    @cached_property
    def _small_copies(self) -> SmallCopies:
        return SmallCopies(self._local_shardings[0], _MOST_ON_HOST)

    def put_together(self, arrays: Sequence[Array], names: Sequence[str]) -> Sequence[Any] | None:
        """Copy the arrays of a step to a single device; None if they must be copied one by one."""
        pairs = zip(arrays, names, strict=True)
        return self._small_copies([owned(narrowed(array, what)) for array, what in pairs])

    def put_sharded(self, batch: Array, what: str) -> "jax.Array":
        """Copy each replica's rows of a batch to its device, as one sharded array."""
        rows = owned(narrowed(batch, what))
        return self._batch_copies(rows.shape, rows.dtype, rows.__getitem__)

    @cached_property
    def _batch_copies(self) -> BlockCopies:
        return BlockCopies(self.sharding)

    def put_steps(self, steps: Array, what: str) -> "jax.Array | Array":
        """Copy each replica's rows of several steps to its device, as one array whose first axis is the steps.

        Small arrays of a single replica stay on the host: the program that they are passed to copies them in less time.
        """
        rows = owned(narrowed(steps, what))
        if not self.is_lone:
            return self._steps_of_all(rows)
        if rows.nbytes <= _MOST_ON_HOST:
            return rows
        return copied(rows.shape, self._local_shardings[0], rows.__getitem__)

    def _steps_of_all(self, rows: Array) -> "jax.Array":
        if not self.spans:
            return copied(rows.shape, self.steps_sharding, rows.__getitem__)
        size = rows.shape[1] // self.local_count

        def block(index: Any) -> Array:
            first = self.own.index((index[1].start or 0) // size) * size
            return rows[:, first : first + size]

        shape = (len(rows), size * self.count, *rows.shape[2:])
        return copied(shape, self.steps_sharding, block)

    def put_pieces(self, pieces: Sequence[Array], what: str) -> "jax.Array":
        """Copy one piece to each replica's device, as one array. Pieces have the same, non-empty shape."""
        rows = [owned(narrowed(piece, what)).reshape(pieces[0].shape or 1) for piece in pieces]
        size = len(rows[0])

        def piece(index: Any) -> Array:
            return rows[self.own.index((index[0].start or 0) // size)]

        return self._batch_copies((size * self.count, *rows[0].shape[1:]), rows[0].dtype, piece)

    def put_each(self, pieces: Sequence[Array], what: str) -> list[Any]:
        """Copy one piece to each replica's device, even during a trace."""
        mine = [owned(narrowed(piece, what)) for piece in pieces]
        pairs = zip(mine, self._local_copies, strict=True)
        return [copy(x.shape, x.dtype, lambda _, whole=x: whole) for x, copy in pairs]

    @cached_property
    def _local_copies(self) -> tuple[BlockCopies, ...]:
        return tuple(map(BlockCopies, self._local_shardings))

    def everywhere(self, array: Any) -> "jax.Array":
        """Replicate an array on all devices. Returns the array itself if it already is replicated."""
        if not self.spans:
            return jax.device_put(array, self.replicated)
        # device_put would check that all workers pass equal values, but a worker's arguments may be its own.
        return self.held_alike([self.to_replica(array, r) for r in range(self.local_count)])

    def held_alike(self, copies: "Sequence[jax.Array]") -> "jax.Array":
        """Make one replicated array from equal copies that are already on their devices."""
        make: Any = jax.make_array_from_single_device_arrays
        return make(copies[0].shape, self.replicated, self._on_inner_axes(copies))

    def _on_inner_axes(self, parts: "Sequence[jax.Array]") -> list[Any]:
        """Copy each replica's array to all of its devices."""
        if not self.has_inner_axes:
            return list(parts)
        pairs = zip(parts, self.own_entries(self._groups), strict=True)
        return [jax.device_put(x, device) for x, group in pairs for device in self._local(group)]

    def entry_of_each_device(self, array: Any) -> "jax.Array":
        """Make an array with a row of this worker on each of its devices, and those of the other workers on theirs."""
        spec = jax.sharding.PartitionSpec(self.mesh.axis_names)
        there: Any = jax.sharding.NamedSharding(self.mesh, spec)
        shape = (self.mesh.size, *array.shape[1:])
        placed = [jax.device_put(array, device) for device in there.addressable_devices]
        return jax.make_array_from_single_device_arrays(shape, there, placed)

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
        placed = self._on_inner_axes(parts)
        return jax.make_array_from_single_device_arrays(shape, self.sharding, placed)

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


def replicas_of(array: Any) -> Replicas | None:
    """Return the replicas that hold an array; None if it is on one device, or on a mesh that no strategy uses."""
    mesh = getattr(getattr(array, "sharding", None), "mesh", None)
    if mesh is None or mesh.size == 1 or mesh not in _known:
        return None
    known = _known[mesh]
    axes = row_axes(array.sharding)
    if axes not in known:
        axes = next(reversed(known))
    return known[axes]() or Replicas(mesh, axes)
