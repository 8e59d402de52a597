"""Steps as structures of global `jax.Array`s."""

from typing import Any

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.structure import DATA, map_structure
from evenfeed.replicas.values import PerReplica


def arrays_of(step: Any) -> Any:
    """Return a step with one sharded array for each per-replica value."""
    if isinstance(step, PerReplica):  # many a step is one part: no structure to walk through
        return _array(step)
    return map_structure(_array, step, rules=DATA)


def _array(value: Any) -> Any:
    if not isinstance(value, PerReplica) or value.values[0] is None:
        return value if not isinstance(value, PerReplica) else None
    whole = value.whole
    if whole is None:
        shapes = [getattr(part, "shape", type(part).__name__) for part in value.values]
        raise InvalidArgumentError(
            f"A step is not one array: its replicas have {shapes}.",
            fix="pass InputOptions(pad_partial_batches=True), or batch with drop_remainder=True and a size that the "
            "replicas divide.",
        )
    return whole
