"""Embeddings of rows of ids: `embedding_lookup_sparse` and `safe_embedding_lookup_sparse`."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.nn.normalization import embedding_lookup
from evenfeed.tensors.sparse.sparse_layout import fill_empty_rows, reshape, shape_of

_COMBINERS: Final = ("mean", "sqrtn", "sum")


def embedding_lookup_sparse(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    params: object,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: object = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Look up the rows of ids, and combine those of each row of `sp_ids`. There must be no empty row.

    Args:
        params: The embeddings: a matrix, a variable, or a list of one.
        sp_ids: The ids: a sparse matrix, or a ragged one.
        sp_weights: The weight of each id, with the same indices; None for 1.
        combiner: "mean" (the default), "sum", or "sqrtn": the sum divided by the norm of the weights.
        max_norm: Scale embeddings down whose euclidean norm is larger.
        name: Accepted for compatibility.
        allow_fast_lookup: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 3, 0], [2, 2])
        >>> table = tf.constant([[0.0], [10.0], [20.0], [30.0]])
        >>> tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum").tolist()
        [[40.0], [0.0]]
    """
    chosen = _combiner(combiner)
    rows, ids = _rows_and_values(sp_ids)
    weights = None
    if sp_weights is not None:
        places, weights = _rows_and_values(sp_weights)
        if type(sp_weights) is not type(sp_ids):
            raise TypeError(
                described(
                    "The ids and the weights must both be sparse or both ragged.",
                    fix="convert one with to_sparse().",
                )
            )
        if not np.array_equal(places, rows):
            raise InvalidArgumentError(
                "The weights must have the indices of the ids.", fix="pass one weight for each id."
            )
    count = int(rows.max(initial=-1)) + 1
    found: Any = embedding_lookup(params, ids, max_norm)
    return _combined(found, rows, weights, count, chosen)


def safe_embedding_lookup_sparse(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    embedding_weights: object,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: int | None = None,
    max_norm: object = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Like `embedding_lookup_sparse`, also for empty rows and for negative ids, which are ignored.

    Args:
        embedding_weights: The embeddings: a matrix, a variable, or a list of one.
        sparse_ids: The ids: a sparse tensor of rank 2 or more.
        sparse_weights: The weight of each id. Ids whose weight is not positive are ignored, except for "sum".
        combiner: See `embedding_lookup_sparse`.
        default_id: The id of an empty row; by default its embedding is 0.
        max_norm: Scale embeddings down whose euclidean norm is larger.
        name: Accepted for compatibility.
        allow_fast_lookup: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> ids = tf.SparseTensor([[0, 0], [2, 0]], [1, -1], [3, 1])
        >>> tf.nn.safe_embedding_lookup_sparse(tf.constant([[5.0], [7.0]]), ids).tolist()
        [[7.0], [0.0], [0.0]]
    """
    chosen = _combiner(combiner)
    shape = shape_of(sparse_ids)
    ids = reshape(sparse_ids, [-1, shape[-1]])
    kept = np.asarray(ids.values >= 0)
    weights: Array | None = None if sparse_weights is None else np.asarray(sparse_weights.values)
    if weights is not None and chosen != "sum":
        kept &= weights > 0
    ids = SparseTensor(ids.indices[kept], ids.values[kept], ids.dense_shape)
    filled, empty = fill_empty_rows(ids, default_id or 0)
    rows = filled.indices[:, 0]
    if weights is not None:
        of_ids = SparseTensor(ids.indices, weights[kept], ids.dense_shape)
        weights = np.asarray(fill_empty_rows(of_ids, 1)[0].values)
    found: Any = embedding_lookup(embedding_weights, filled.values, max_norm)
    result = _combined(found, rows, weights, len(empty), chosen)
    if default_id is None:
        result = jnp.where(np.asarray(empty)[:, None], jnp.zeros((), result.dtype), result)
    return result.reshape(*shape[:-1], *result.shape[1:])


def _combiner(given: str | None) -> str:
    if (given or "mean") not in _COMBINERS:
        raise ValueError(
            described(
                f"combiner must be one of {', '.join(_COMBINERS)}, but got {given!r}.",
                fix='pass "mean".',
            )
        )
    return given or "mean"


def _rows_and_values(value: Any) -> tuple[Array, Array]:
    """Return the row of each value, and the values."""
    if isinstance(value, RaggedTensor):
        lengths = np.asarray(value.row_lengths())
        rows: Array = np.arange(len(lengths))
        return np.repeat(rows, lengths), np.asarray(value.flat_values)
    if not isinstance(value, SparseTensor):
        raise TypeError(
            described(
                f"Expected a SparseTensor or a RaggedTensor, but got {type(value).__name__}.",
                fix="look up dense ids with evenfeed.nn.embedding_lookup.",
            )
        )
    return np.asarray(value.indices[:, 0]), np.asarray(value.values)


def _combined(found: Any, rows: Array, weights: Array | None, count: int, combiner: str) -> Any:
    each = np.ones(len(rows)) if weights is None else weights
    amounts = jnp.asarray(each, found.dtype).reshape(-1, *[1] * (found.ndim - 1))
    total = jax.ops.segment_sum(found * amounts, rows, num_segments=count)
    if combiner == "sum":
        return total
    powers = amounts if combiner == "mean" else amounts**2
    norm = jax.ops.segment_sum(powers, rows, num_segments=count)
    norm = jnp.sqrt(norm) if combiner == "sqrtn" else norm
    return jnp.where(norm == 0, jnp.zeros((), total.dtype), total / jnp.where(norm == 0, 1, norm))
