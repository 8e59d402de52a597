"""How many steps are brought to the devices together, so that they run in one program."""

from typing import Final

import numpy as np

from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.plan.node import Node

MOST_STEPS: Final = 128
MOST_BYTES: Final = 16 << 20
# If the size of a step is unknown.
_FEW_STEPS: Final = 8


def most_together(plan: Node, elements: int) -> int:
    """Return the most steps that are brought to the devices together.

    Args:
        plan: The plan of the elements.
        elements: The number of its elements in a step.
    """
    rows = global_batch_size(plan)
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    sizes = [_bytes(spec, rows) for spec in specs]
    if None in sizes:
        return _FEW_STEPS
    each = elements * sum(size for size in sizes if size is not None)
    return max(1, min(MOST_STEPS, MOST_BYTES // max(1, each)))


def _bytes(spec: TensorSpec, rows: int | None) -> int | None:
    """Return the memory size of a component, or None if it is unknown."""
    shape = spec.shape
    if shape.rank is None:
        return None
    known = [
        rows if index == 0 and length is None else length for index, length in enumerate(shape)
    ]
    if None in known:
        return None
    return int(np.prod([length for length in known if length is not None])) * spec.dtype.itemsize
