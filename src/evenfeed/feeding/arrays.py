"""Steps as structures of global `jax.Array`s."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import to_array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, map_structure, pack
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica, PerReplicaSpec


def arrays_of(replicas: Replicas, step: Any) -> Any:
    """Return a step with one sharded array for each value in it."""
    if isinstance(step, PerReplica):  # many a step is one part: no structure to walk through
        return _array(replicas, step)
    return map_structure(partial(_array, replicas), step, rules=DATA)


def array_specs_of(spec: Any, replicas: Replicas) -> Any:
    """Return the specs of the arrays that the steps with a spec become."""
    return pack(spec, [_array_spec(part, replicas) for part in flatten(spec, DATA)], DATA)


def _array_spec(spec: TypeSpec, replicas: Replicas) -> TypeSpec:
    if not isinstance(spec, PerReplicaSpec):
        return spec
    part = spec.value_specs[0]
    if not isinstance(part, TensorSpec) or part.shape.rank is None:
        return part
    rows = part.shape[0] if part.shape.rank else 1
    whole = TensorShape([None if rows is None else rows * replicas.count])
    return TensorSpec(whole.concatenate(part.shape[1:]), part.dtype)


def _array(replicas: Replicas, value: Any) -> Any:
    if not isinstance(value, PerReplica):
        return None if value is None else _on_devices([value], replicas)
    if value.parts[0] is None:
        return None
    whole = value.whole
    if whole is not None:
        return whole
    shapes = value.shapes or [getattr(part, "shape", None) for part in value.parts]
    if len(set(shapes)) == 1:
        return _on_devices(value.parts, replicas)
    raise InvalidArgumentError(
        f"A step is not one array: its replicas have {list(shapes)}.",
        fix="pass InputOptions(pad_partial_batches=True), or batch with drop_remainder=True and a size that the "
        "replicas divide.",
    )


def _on_devices(parts: Sequence[Any], replicas: Replicas) -> Any:
    """Return parts of one shape as one array: those of one device, or which are still on the host."""
    if any(part.dtype == dtypes.string for part in parts):
        raise InvalidArgumentError(
            "A step is not one array: a part of it is text, which stays on the host.",
            fix="leave the text out with map, or iterate over the distributed dataset itself.",
        )
    if not parts[0].ndim and replicas.count == 1:
        return replicas.everywhere(parts[0])
    if any(isinstance(part, np.ndarray) for part in parts):
        return replicas.put_pieces([to_array(part) for part in parts], "a step")
    return replicas.joined(parts)
