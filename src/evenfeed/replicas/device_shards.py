"""The parts of arrays that are split over a mesh: on which devices they are, and which of them this process has."""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax


def shards(array: "jax.Array") -> tuple[Any, ...]:
    """Return the shards of an array that is split along its first axis, in order."""
    sharding: Any = array.sharding
    mesh: Any = getattr(sharding, "mesh", None)
    axes = () if mesh is None else row_axes(sharding)
    if array.size == 0 and mesh is not None:
        # A compiled program returns an empty array whole on every device, whatever its sharding.
        groups = device_groups(mesh, axes or mesh.axis_names)
        rows = array.shape[0] // len(groups)
        return tuple(part[:rows] for part in _on_own_devices(array, groups))
    if mesh is not None and _is_in_mesh_order(sharding) and not array.is_fully_replicated:
        # Rows are in mesh order. Looking up the row indices of each shard is slow in JAX.
        return tuple(map(array.addressable_data, range(len(sharding.addressable_devices))))
    if mesh is not None and axes and len(axes) < len(mesh.axis_names):
        return _on_first_devices(array, device_groups(mesh, axes))
    found = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    return tuple(shard.data for shard in found)


def check_devices(mesh: Any) -> None:
    """Raise InvalidArgumentError if a mesh has a device twice: no array can be put on it."""
    seen: set[Any] = set()
    for device in mesh.devices.flat:
        if device in seen:
            raise InvalidArgumentError(
                f"The mesh has {device} more than once.",
                fix="make the mesh of different devices, from jax.devices().",
            )
        seen.add(device)


@cache
def device_groups(mesh: Any, axes: tuple[str, ...]) -> Any:
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
    own = _on_own_devices(array, groups)
    if all(part.shape == (rows, *array.shape[1:]) for part in own):
        return tuple(own)
    with jax.ensure_compile_time_eval():  # a replica's part is on several devices
        pieces = [array[r * rows : (r + 1) * rows] for r in range(len(groups))]
    return tuple(jax.device_put(part, device) for part, device in zip(pieces, firsts, strict=True))


def _on_own_devices(array: "jax.Array", groups: Any) -> list[Any]:
    """Return the shard on the first device of each replica that this process has, for each replica with one."""
    by_device = {shard.device: shard.data for shard in array.addressable_shards}
    here = ([by_device[device] for device in group if device in by_device] for group in groups)
    return [found[0] for found in here if found]


def locally_held(array: "jax.Array") -> bool:
    """Return True if each process can read the whole array, without those that have other parts of it."""
    if array.is_fully_addressable or array.is_fully_replicated:
        return True
    blocks: dict[int, set[Any]] = {}
    sharding: Any = array.sharding
    for device, index in sharding.devices_indices_map(array.shape).items():
        blocks.setdefault(device.process_index, set()).add(str(index))
    return len({frozenset(own) for own in blocks.values()}) == 1


def assembled(array: "jax.Array") -> Any:
    """Return the value of an array that is `locally_held`, on the host."""
    if array.is_fully_addressable or array.is_fully_replicated:
        return array
    whole = np.empty(array.shape, array.dtype)
    for shard in array.addressable_shards:
        whole[shard.index] = np.asarray(shard.data)
    return whole


def _is_in_mesh_order(sharding: Any) -> bool:
    """Return True if an array's rows are split over all axes of its mesh, in their order."""
    spec, names = sharding.spec, sharding.mesh.axis_names
    return len(spec) > 0 and spec[0] == (names if len(names) > 1 else names[0])
