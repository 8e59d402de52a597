"""Sparse tensors: TensorFlow's `tf.sparse`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.core.sparse.sparse_tensors import SparseTensor, to_dense

__all__ = [
    "SparseTensor",
    "to_dense",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
