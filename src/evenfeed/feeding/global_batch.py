"""The size of a plan's global batches."""

from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.node import Node


def global_batch_size(plan: Node) -> int | None:
    """Return the nominal batch size of a plan, or None if TensorFlow cannot determine it either.

    It is the first dimension, if all components know it. Otherwise it is the size of the last batch node,
    looking through nodes that leave batches unchanged.
    """
    specs = [spec for spec in flatten(plan.element_spec, DATA) if isinstance(spec, TensorSpec)]
    lengths = {spec.shape[0] if spec.shape.rank else None for spec in specs}
    if lengths and None not in lengths:
        return lengths.pop() if len(lengths) == 1 else None
    return plan.batch_size_seen
