"""Ragged tensors: TensorFlow's `tf.ragged`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.core.ragged.ragged_functions import (
    boolean_mask,
    constant,
    map_flat_values,
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
    stack,
    stack_dynamic_partitions,
)
from evenfeed.core.ragged.ragged_functions import range_ as range  # noqa: A004 - TensorFlow's name
from evenfeed.text_ops.crossing import cross, cross_hashed

__all__ = [
    "boolean_mask",
    "constant",
    "cross",
    "cross_hashed",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "Compute on x.flat_values, or on x.to_tensor().")
