"""Joins the parts of a per-replica value into one sharded array, and splits it again."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias, cast

import numpy as np

from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.device_shards import shards
from evenfeed.replicas.mesh import Replicas, replicas_of
from evenfeed.tensors.device_arrays import is_traced

# The shape of each replica's part, over all workers.
Shapes: TypeAlias = tuple[tuple[int, ...], ...]


def are_alike(parts: Sequence[Any], shapes: Shapes | None) -> bool:
    """Return True if the parts are arrays of one shape and dtype, each on a different device.

    Args:
        parts: The parts of this worker.
        shapes: The shapes of the parts of all workers, if there are other workers.
    """
    if shapes is not None and len(set(shapes)) > 1:
        return False
    devices = [device_of(part) for part in parts]
    if not parts or None in devices or len(set(devices)) < len(parts):
        return False
    return len({(part.shape, part.dtype) for part in parts}) == 1


def joined_parts(
    parts: Sequence[Any], of: Replicas | None, shapes: Shapes | None
) -> "tuple[jax.Array, bool]":
    """Make one sharded array from parts that are already on their devices.

    Returns:
        The array, and True if the parts are scalars.
    """
    _check_numbers(parts)
    _check_alike(parts, shapes)
    devices = [device_of(part) for part in parts]
    own = [device for device in dict.fromkeys(devices) if device is not None]
    if len(own) < len(parts):
        raise not_one_array(
            f"they are on {[_place(part) for part in parts]}",
            "put each part on a different device with jax.device_put(part, device), or join them "
            "on one device with jax.numpy.concatenate(value.values).",
        )
    replicas = Replicas.on(own) if of is None else of
    if parts[0].shape:
        return replicas.joined(parts), False
    with jax.ensure_compile_time_eval():  # a traced function may have captured the scalars
        return replicas.stacked(parts), True


def _check_numbers(parts: Sequence[Any]) -> None:
    if any(isinstance(part, (str, bytes)) or _is_text(part) for part in parts):
        raise not_one_array("they are strings, which stay on the host", "use value.values.")
    if not parts:
        raise not_one_array("there are no parts", "pass one part for each replica.")
    others = [type(part).__name__ for part in parts if not is_tensor(part)]
    if others:
        raise not_one_array(f"they are not arrays but {', '.join(others)}", "use value.values.")


def _check_alike(parts: Sequence[Any], of_all: Shapes | None) -> None:
    shapes = list(of_all or [tuple(part.shape) for part in parts])
    if len(set(shapes)) > 1:
        raise not_one_array(
            f"their shapes are {shapes}",
            "use a batch size that is a multiple of the number of replicas, and drop_remainder=True.",
        )
    names = [str(part.dtype) for part in parts]
    if len(set(names)) > 1:
        raise not_one_array(f"their dtypes are {names}", "cast the parts to one dtype.")


def not_one_array(why: str, fix: str) -> InvalidArgumentError:
    """Return the error for parts that cannot be joined into one array."""
    return InvalidArgumentError(
        f"The replicas' parts cannot form one sharded array: {why}.", fix=fix
    )


def _is_text(part: Any) -> bool:
    # A jax.random key has an extended dtype, which is not a np.dtype.
    dtype: Any = part.dtype if is_tensor(part) else None
    return isinstance(dtype, np.dtype) and dtype.kind in "OSU"


def device_of(part: Any) -> Any:
    """Return an array's device; None for a host array, a tracer, or an array on several devices."""
    if not isinstance(part, jax.Array) or is_traced(part):
        return None
    devices = list(part.devices())
    return devices[0] if len(devices) == 1 else None


def _place(part: Any) -> str:
    if not isinstance(part, jax.Array):
        return "the host"
    if is_traced(part):
        return "no device yet (JAX is tracing)"
    return " and ".join(sorted(map(str, part.devices())))


# --- and back ---------------------------------------------------------------------------------


def replicated_array(parts: Sequence[Any]) -> "jax.Array":
    """Make one replicated array from equal copies that are already on their devices."""
    replicas = Replicas.on([device for part in parts if (device := device_of(part)) is not None])
    return replicas.held_alike(parts)


def count_here(array: Any, count: int | None) -> int:
    """Return the number of this worker's parts of an array; `count` if the array cannot tell."""
    if count is None or not is_at_hand(array):
        owner = replicas_of(array)
        return len(array.sharding.addressable_devices) if owner is None else owner.local_count
    return count


def is_at_hand(array: Any) -> bool:
    """Return True unless other workers hold parts of the array. A tracer counts as local."""
    return is_traced(array) or getattr(array, "is_fully_addressable", True)


def pieces_of(array: Any, count: int) -> tuple[Any, ...]:
    """Return the parts of an array that is split along its first axis."""
    if is_traced(array):  # it has no shards yet
        return tuple(jnp.split(array, count))
    if not isinstance(array, jax.Array):
        return _of_host(array, count)
    pieces = shards(array)
    if len(pieces) == count:
        return pieces
    # The array was restored from a file or from the host, and is on a single device.
    with jax.ensure_compile_time_eval():
        return tuple(jnp.split(array, count))


def _of_host(value: Any, count: int) -> tuple[Any, ...]:
    """Return the parts of an object that `jax.tree.map` or a library put in place of the array."""
    if isinstance(value, np.ndarray):
        rows = cast("Any", value)
        return (
            tuple(np.split(rows, count))
            if rows.ndim and len(rows) % count == 0
            else (rows,) * count
        )
    return (value,) * count


def first_of(row: Any) -> Any:
    """Return the scalar in a row of length one."""
    if not is_tensor(row):
        return row
    rows: Any = row
    with nullcontext() if is_traced(row) else jax.ensure_compile_time_eval():
        return rows[0]


def copies_of(array: Any, count: int) -> tuple[Any, ...]:
    """Return the copies of an array that every replica holds."""
    if is_traced(array) or not isinstance(array, jax.Array):
        return (array,) * count
    copies = tuple(shard.data for shard in array.addressable_shards)
    if len(copies) == count:
        return copies
    owner = replicas_of(array)
    if owner is None or owner.local_count != count:
        return (array,) * count
    by_device = {shard.device: shard.data for shard in array.addressable_shards}
    return tuple(by_device[device] for device in owner.local_devices)
