"""Computes on ragged tensors row by row: map_fn, softmax, and sums of several."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.row_partitions import known_axis
from evenfeed.core.specs import TensorSpec


def map_fn(
    fn: Callable[[Any], Any],
    elems: RaggedTensor,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Call a function with each row. By default its results are rows too."""
    del parallel_iterations, back_prop, swap_memory, infer_shape, name
    wanted = fn_output_signature if fn_output_signature is not None else dtype
    found = [fn(row) for row in elems]
    if wanted is None or isinstance(wanted, RaggedTensorSpec):
        own = RaggedTensorSpec(elems.shape[1:], elems.dtype, elems.ragged_rank - 1)
        return rows_of_results(found, own if wanted is None else wanted)
    kind = wanted.dtype if isinstance(wanted, TensorSpec) else dtypes.as_dtype(wanted)
    if not found:
        lengths = wanted.shape.as_list() if isinstance(wanted, TensorSpec) and wanted.shape else []
        return computed_tensor(np.zeros([0, *(length or 0 for length in lengths)], kind))
    return computed_tensor(np.stack([host_array(one, kind) for one in found]))


def rows_of_results(found: Sequence[Any], spec: RaggedTensorSpec) -> Any:
    """Return the results of a function as rows of a ragged tensor. They must have the spec."""
    rows = [one if isinstance(one, RaggedTensor) else host_array(one) for one in found]
    for row in rows:
        if not spec.is_compatible_with(row):
            raise InvalidArgumentError(
                f"The function returned {dtypes.name_of(row.dtype)} of shape {tuple(row.shape)} for a row, where "
                f"{spec} was expected.",
                fix="pass fn_output_signature= with the dtype or spec of a result.",
            )
    return spec.stacked(rows)


def softmax(logits: RaggedTensor, axis: Any = None, name: str | None = None) -> RaggedTensor:
    """Return the probabilities of the values of each innermost row."""
    del name
    rank = len(logits.shape)
    if known_axis(-1 if axis is None else axis, rank) != rank - 1 or logits.ragged_rank != rank - 1:
        raise ValueError(
            described(
                "softmax of a ragged tensor computes along its innermost ragged axis.",
                fix="omit axis, or call x.to_tensor() first.",
            )
        )
    inner: Any = logits
    while isinstance(inner.values, RaggedTensor):
        inner = inner.values
    values, ids = np.asarray(inner.values), np.asarray(inner.value_rowids())
    highest = np.full(inner.row_count, -np.inf, values.dtype)
    np.maximum.at(highest, ids, values)
    powers = np.exp(values - highest[ids])
    totals = np.zeros(inner.row_count, values.dtype)
    np.add.at(totals, ids, powers)
    return logits.with_flat_values(powers / totals[ids])


def add_n(inputs: Sequence[Any], name: str | None = None) -> Any:
    """Add up ragged tensors with the same rows."""
    del name
    total = inputs[0]
    for one in inputs[1:]:
        total = total + one
    return total
