"""Sparse tensors: TensorFlow's `tf.sparse`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.core.sparse.sparse_tensors import SparseTensor, to_dense
from evenfeed.tensors.sparse.sparse_counts import bincount, to_indicator
from evenfeed.tensors.sparse.sparse_layout import (
    concat,
    expand_dims,
    eye,
    fill_empty_rows,
    from_dense,
    reorder,
    reset_shape,
    reshape,
    retain,
    slice,  # noqa: A004 - TensorFlow's name
    split,
    transpose,
)
from evenfeed.tensors.sparse.sparse_math import (
    add,
    map_values,
    mask,
    maximum,
    minimum,
    reduce_max,
    reduce_sum,
    segment_mean,
    segment_sqrt_n,
    segment_sum,
    softmax,
    sparse_dense_matmul,
)
from evenfeed.text_ops.feature_crosses import cross, cross_hashed

__all__ = [
    "SparseTensor",
    "add",
    "bincount",
    "concat",
    "cross",
    "cross_hashed",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "mask",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
