"""The replicas of all workers: their device mesh, and copying data to this worker's devices."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from math import prod
from typing import Any, Final, final
from weakref import ref

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.inner_axes import vectorized
from evenfeed.replicas.session import Session
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
        self._groups = _device_groups(mesh, self.axes)
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

    def put_sharded(self, batch: Array, what: str) -> "jax.Array":
        """Copy each replica's rows of a batch to its device, as one sharded array."""
        rows = owned(narrowed(batch, what))
        return copied(rows.shape, self.sharding, rows.__getitem__)

    def put_steps(self, steps: Array, what: str) -> "jax.Array | Array":
        """Copy each replica's rows of several steps to its device, as one array whose first axis is the steps.

        Small arrays of a single replica stay on the host: the program that they are passed to copies them in less time.
        """
        rows = owned(narrowed(steps, what))
        if self.count > 1:
            return copied(rows.shape, self.steps_sharding, rows.__getitem__)
        if rows.nbytes <= _MOST_ON_HOST:
            return rows
        return copied(rows.shape, self._local_shardings[0], rows.__getitem__)

    def put_pieces(self, pieces: Sequence[Array], what: str) -> "jax.Array":
        """Copy one piece to each replica's device, as one array. Pieces have the same, non-empty shape."""
        rows = [owned(narrowed(piece, what)).reshape(pieces[0].shape or 1) for piece in pieces]
        size = len(rows[0])

        def piece(index: Any) -> Array:
            return rows[(index[0].start or 0) // size - self.first]

        return copied((size * self.count, *rows[0].shape[1:]), self.sharding, piece)

    def put_each(self, pieces: Sequence[Array], what: str) -> list[Any]:
        """Copy one piece to each replica's device, even during a trace."""
        mine = [owned(narrowed(piece, what)) for piece in pieces]
        pairs = zip(mine, self._local_shardings, strict=True)
        return [copied(piece.shape, there, lambda _, whole=piece: whole) for piece, there in pairs]

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
        pairs = zip(parts, self._groups, strict=True)
        return [jax.device_put(part, device) for part, group in pairs for device in group]

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


def shards(array: "jax.Array") -> tuple[Any, ...]:
    """Return the shards of an array that is split along its first axis, in order."""
    sharding: Any = array.sharding
    mesh: Any = getattr(sharding, "mesh", None)
    axes = () if mesh is None else row_axes(sharding)
    if array.size == 0 and mesh is not None:
        # A compiled program returns an empty array whole on every device, whatever its sharding.
        count = len(_device_groups(mesh, axes)) if axes else mesh.size
        rows = array.shape[0] // count
        return tuple(shard.data[:rows] for shard in array.addressable_shards[:: mesh.size // count])
    if mesh is not None and _is_in_mesh_order(sharding) and not array.is_fully_replicated:
        # Rows are in mesh order. Looking up the row indices of each shard is slow in JAX.
        return tuple(map(array.addressable_data, range(len(sharding.addressable_devices))))
    if mesh is not None and axes and len(axes) < len(mesh.axis_names):
        return _on_first_devices(array, _device_groups(mesh, axes))
    found = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    return tuple(shard.data for shard in found)


@cache
def _device_groups(mesh: Any, axes: tuple[str, ...]) -> Any:
    """Return the devices of each replica, as the rows of an array, if replicas differ along some axes."""
    names: tuple[str, ...] = mesh.axis_names
    inner = [name for name in names if name not in axes]
    grid = mesh.devices.transpose([names.index(name) for name in (*axes, *inner)])
    return grid.reshape(prod(mesh.shape[name] for name in axes), -1)


def axes_of(part: Any) -> tuple[str, ...]:
    """Return the mesh axes in one entry of a `PartitionSpec`."""
    if part is None:
        return ()
    return (part,) if isinstance(part, str) else tuple(part)


def row_axes(sharding: Any) -> tuple[str, ...]:
    """Return the mesh axes over which a sharding splits the rows of an array."""
    spec: Any = getattr(sharding, "spec", ())
    return axes_of(spec[0]) if len(spec) else ()


def _on_first_devices(array: "jax.Array", groups: Any) -> tuple[Any, ...]:
    """Return the part of each replica, on its first device, of an array that is split along its first axis."""
    rows, firsts = array.shape[0] // len(groups), groups[:, 0]
    by_device = {shard.device: shard.data for shard in array.addressable_shards}
    own = [by_device[device] for device in firsts]
    if all(part.shape == (rows, *array.shape[1:]) for part in own):
        return tuple(own)
    with jax.ensure_compile_time_eval():  # a replica's part is on several devices
        pieces = [array[r * rows : (r + 1) * rows] for r in range(len(groups))]
    return tuple(jax.device_put(part, device) for part, device in zip(pieces, firsts, strict=True))


def _is_in_mesh_order(sharding: Any) -> bool:
    """Return True if an array's rows are split over all axes of its mesh, in their order."""
    spec, names = sharding.spec, sharding.mesh.axis_names
    return len(spec) > 0 and spec[0] == (names if len(names) > 1 else names[0])


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


def copied(
    shape: tuple[int, ...], there: "jax.sharding.Sharding", rows: Callable[[Any], Array]
) -> "jax.Array":
    """Make an array whose blocks a function returns, given their indices."""
    # Faster than jax.device_put for small batches, and not traced inside a user's jit. The transfer
    # is explicit, so it is allowed even if the user made JAX refuse implicit ones.
    with jax.transfer_guard_host_to_device("allow"):
        return jax.make_array_from_callback(shape, there, rows)


def owned(array: Array) -> Array:
    """Return an array that nobody else will write to, because JAX may use its memory directly.

    A read-only array is a view of the user's array, which the user may change at any time. On the CPU,
    `may_alias=False` does not keep JAX from sharing it.
    """
    return array if array.flags.writeable else array.copy()
