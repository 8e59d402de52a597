"""Makes one sharded array of the parts of a value, or says why they are none."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.jax_door import jax
from evenfeed.replicas.mesh import Replicas
from evenfeed.tensors.placement import is_traced

_jax: Any = jax  # whose arrays do not say the type of their devices

# Of the parts of a value on all replicas.
Shapes: TypeAlias = tuple[tuple[int, ...], ...]


def are_alike(parts: Sequence[Any], shapes: Shapes | None) -> bool:
    """Tell whether the parts are arrays of one shape and dtype, each on a device of its own.

    Args:
        parts: Those of this worker.
        shapes: Those of all workers, where there are others.
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
    """Make one sharded array of parts that lie on their devices already; tell whether they are scalars."""
    _check_numbers(parts)
    _check_alike(parts, shapes)
    devices = [device_of(part) for part in parts]
    own = [device for device in dict.fromkeys(devices) if device is not None]
    if len(own) < len(parts):
        raise not_one_array(
            f"they lie on {[_place(part) for part in parts]}",
            "put each part on a device of its own with jax.device_put(part, device), or join them "
            "on one device with jax.numpy.concatenate(value.values).",
        )
    replicas = Replicas(own) if of is None else of
    if parts[0].shape:
        return replicas.joined(parts), False
    return replicas.stacked(parts), True


def _check_numbers(parts: Sequence[Any]) -> None:
    if any(isinstance(part, (str, bytes)) or _is_text(part) for part in parts):
        raise not_one_array("they are text, which stays on the host", "use value.values.")
    if not parts:
        raise not_one_array("there are none", "pass one part for each replica.")
    others = [type(part).__name__ for part in parts if not is_tensor(part)]
    if others:
        raise not_one_array(f"they are no arrays but {', '.join(others)}", "use value.values.")


def _check_alike(parts: Sequence[Any], of_all: Shapes | None) -> None:
    shapes = list(of_all or [tuple(part.shape) for part in parts])
    if len(set(shapes)) > 1:
        raise not_one_array(
            f"their shapes are {shapes}",
            "choose a batch size that the number of replicas divides, and drop_remainder=True.",
        )
    names = [str(part.dtype) for part in parts]
    if len(set(names)) > 1:
        raise not_one_array(f"their dtypes are {names}", "cast the parts to one dtype.")


def not_one_array(why: str, fix: str) -> InvalidArgumentError:
    """Return the error that says why parts are not one array."""
    return InvalidArgumentError(f"The replicas' parts are not one sharded array: {why}.", fix=fix)


def _is_text(part: Any) -> bool:
    # A key of jax.random has a dtype of JAX's own.
    dtype: Any = part.dtype if is_tensor(part) else None
    return isinstance(dtype, np.dtype) and dtype.kind in "OSU"


def device_of(part: Any) -> Any:
    """Return the one device of an array; None for an array of the host, of several, or of none yet."""
    if not isinstance(part, _jax.Array) or is_traced(part):
        return None
    devices = list(part.devices())
    return devices[0] if len(devices) == 1 else None


def _place(part: Any) -> str:
    if not isinstance(part, _jax.Array):
        return "the host"
    if is_traced(part):
        return "no device yet (JAX is tracing)"
    return " and ".join(sorted(map(str, part.devices())))
