"""Functions that compute with sparse tensors: TensorFlow's `tf.sparse.add`, `reduce_sum`, `sparse_dense_matmul` and so on."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Callable
from typing import Any

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.sparse.sparse_tensors import SparseTensor, to_dense
from evenfeed.core.tensor_types import host_tensor
from evenfeed.tensors.arrays.picking import gather
from evenfeed.tensors.axes import axis_of, known_integer
from evenfeed.tensors.creation import Tensor, convert_to_tensor, is_on_device, read
from evenfeed.tensors.indexed_slices import IndexedSlices
from evenfeed.tensors.math import segments
from evenfeed.tensors.sparse.sparse_layout import checked, grouped, ordered, shape_of


def add(a: Any, b: Any, threshold: object = 0) -> Any:
    """Add two sparse tensors, or a sparse tensor and a dense one. The sum with a dense one is dense.

    Args:
        a: A tensor; one of both must be sparse.
        b: A tensor of the same shape.
        threshold: A sum of two entries whose magnitude is smaller is dropped.

    Examples:
        >>> import evenfeed as tf
        >>> one = tf.SparseTensor([[0], [2]], [5, 7], [3])
        >>> tf.sparse.add(one, one).values.tolist()
        [10, 14]
        >>> tf.sparse.add(one, [1, 1, 1]).tolist()
        [6, 1, 8]
    """
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        total, is_in_both = _joined("add", a, b, np.add)
        keeps = ~is_in_both | (np.abs(total.values) >= host_array(threshold))
        return SparseTensor(total.indices[keeps], total.values[keeps], total.dense_shape)
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError(
            described(
                f"add needs a SparseTensor, but got {type(a).__name__} and {type(b).__name__}.",
                fix="add dense tensors with evenfeed.add.",
            )
        )
    sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
    if is_on_device(dense):
        whole = read(dense)
        _check_same_shape("add", shape_of(sparse), tuple(whole.shape))
        return whole.at[tuple(sparse.indices.T)].add(sparse.values)
    array = host_array(dense, sparse.dtype)
    _check_same_shape("add", shape_of(sparse), array.shape)
    return host_tensor(array + to_dense(sparse))


def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Return the larger one of the values at each place that one of them has. Others count as 0.

    Examples:
        >>> import evenfeed as tf
        >>> a, b = tf.SparseTensor([[0]], [-5], [3]), tf.SparseTensor([[1]], [7], [3])
        >>> tf.sparse.maximum(a, b).values.tolist()
        [0, 7]
    """
    return _joined("maximum", checked("maximum", sp_a), checked("maximum", sp_b), np.maximum)[0]


def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Return the smaller one of the values at each place that one of them has. Others count as 0.

    Examples:
        >>> import evenfeed as tf
        >>> a, b = tf.SparseTensor([[0]], [-5], [3]), tf.SparseTensor([[1]], [7], [3])
        >>> tf.sparse.minimum(a, b).values.tolist()
        [-5, 0]
    """
    return _joined("minimum", checked("minimum", sp_a), checked("minimum", sp_b), np.minimum)[0]


def reduce_sum(
    sp_input: Any,
    axis: object = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """Add up the values along axes; by default all.

    Args:
        sp_input: The sparse tensor.
        axis: One axis or several.
        keepdims: Whether to keep them, with length 1.
        output_is_sparse: Whether to return a sparse tensor.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.reduce_sum(tf.SparseTensor([[0, 0], [0, 1]], [5, 7], [2, 2]), axis=1).tolist()
        [12, 0]
    """
    return _reduced("reduce_sum", np.add, sp_input, axis, bool(keepdims), output_is_sparse)


def reduce_max(
    sp_input: Any,
    axis: object = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """Return the largest of the stored values along axes; 0 if there are none. See `reduce_sum`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.reduce_max(tf.SparseTensor([[0, 0], [0, 1]], [-5, -7], [2, 2]), axis=1).tolist()
        [-5, 0]
    """
    return _reduced("reduce_max", np.maximum, sp_input, axis, bool(keepdims), output_is_sparse)


def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Apply softmax to the stored values of each row, along the last axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.softmax(tf.SparseTensor([[0, 0], [0, 2]], [1.0, 1.0], [1, 3])).values.tolist()
        [0.5, 0.5]
    """
    tensor = checked("softmax", sp_input)
    if len(tensor.dense_shape) < _MATRIX or tensor.dtype.kind != "f":
        raise InvalidArgumentError(
            f"softmax needs floats of rank 2 or more, but got {tensor.dtype.name}{list(shape_of(tensor))}.",
            fix="convert the values with evenfeed.cast, and add an axis with evenfeed.sparse.expand_dims.",
        )
    tensor = ordered(tensor)
    places, rows = grouped(tensor.indices[:, :-1])
    count = len(places)
    peaks = np.full(count, -np.inf, tensor.dtype)
    np.maximum.at(peaks, rows, tensor.values)
    powers = np.exp(tensor.values - peaks[rows])
    totals = np.zeros(count, tensor.dtype)
    np.add.at(totals, rows, powers)
    return SparseTensor(tensor.indices, powers / totals[rows], tensor.dense_shape)


_MATRIX = 2


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with the values of sparse tensors, which must have the same indices.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.map_values(tf.square, tf.SparseTensor([[1]], [5], [3])).values.tolist()
        [25]
    """
    sparse = [each for each in (*args, *kwargs.values()) if isinstance(each, SparseTensor)]
    if not sparse:
        raise ValueError(
            described("map_values needs a SparseTensor among the arguments.", fix="pass one.")
        )
    first = sparse[0]
    for other in sparse[1:]:
        if not (
            np.array_equal(first.indices, other.indices)
            and np.array_equal(first.dense_shape, other.dense_shape)
        ):
            raise InvalidArgumentError(
                "map_values needs sparse tensors with the same indices and shapes.",
                fix="sort them with evenfeed.sparse.reorder, or compute with evenfeed.sparse.add.",
            )
    found = op(*map(_values, args), **{name: _values(each) for name, each in kwargs.items()})
    return SparseTensor(first.indices, found, first.dense_shape)


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Multiply a sparse matrix and a dense one, of which either may be the first.

    Args:
        sp_a: A matrix; one of both is sparse.
        b: A matrix.
        adjoint_a: Whether to transpose the first one, and to conjugate its numbers.
        adjoint_b: Whether to transpose the second one, and to conjugate its numbers.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> diagonal = tf.SparseTensor([[0, 0], [1, 1]], [2.0, 3.0], [2, 2])
        >>> tf.sparse.sparse_dense_matmul(diagonal, [[1.0, 1.0], [1.0, 1.0]]).tolist()
        [[2.0, 2.0], [3.0, 3.0]]
    """
    if isinstance(b, SparseTensor) and not isinstance(sp_a, SparseTensor):
        found = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return jnp.conj(found.T) if found.dtype.kind == "c" else found.T
    tensor = checked("sparse_dense_matmul", sp_a)
    dense: Any = convert_to_tensor(b, dtype_hint=tensor.dtype)
    dense = jnp.conj(dense.T) if adjoint_b else dense
    values = jnp.asarray(np.conj(tensor.values) if adjoint_a else tensor.values)
    rows, columns = tensor.indices.T[::-1] if adjoint_a else tensor.indices.T
    count, inner = shape_of(tensor)[::-1] if adjoint_a else shape_of(tensor)
    if dense.ndim != _MATRIX or dense.shape[0] != inner or values.dtype != dense.dtype:
        raise InvalidArgumentError(
            f"A sparse {values.dtype.name} matrix of {count} x {inner} cannot be multiplied with "
            f"{dense.dtype.name}{list(dense.shape)}.",
            fix=f"pass a {values.dtype.name} matrix with {inner} rows.",
        )
    picked = dense[np.asarray(columns)] * values[:, None]
    return jax.ops.segment_sum(picked, np.asarray(rows), num_segments=count)


def mask(a: Any, mask_indices: object, name: str | None = None) -> IndexedSlices:
    """Return IndexedSlices without the rows that have one of these indices.

    Examples:
        >>> import evenfeed as tf
        >>> rows = tf.IndexedSlices([1.0, 2.0, 3.0], [12, 26, 37])
        >>> tf.sparse.mask(rows, [12, 37]).indices.tolist()
        [26]
    """
    kept = np.flatnonzero(~np.isin(np.asarray(a.indices), host_array(mask_indices)))
    return IndexedSlices(gather(a.values, kept), gather(a.indices, kept), a.dense_shape)


def segment_sum(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    data: object,
    indices: object,
    segment_ids: object,
    num_segments: object = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Pick rows with `gather`, and add up those of each segment.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sparse.segment_sum([[1.0], [2.0], [4.0]], [0, 2, 1], [0, 0, 1]).tolist()
        [[5.0], [2.0]]
    """
    return _of_segments("sum", data, indices, segment_ids, num_segments)


def segment_mean(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    data: object,
    indices: object,
    segment_ids: object,
    num_segments: object = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Pick rows with `gather`, and average those of each segment; see `segment_sum`."""
    return _of_segments("mean", data, indices, segment_ids, num_segments)


def segment_sqrt_n(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    data: object,
    indices: object,
    segment_ids: object,
    num_segments: object = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Like `segment_sum`, divided by the square root of the number of rows in the segment."""
    return _of_segments("sqrt_n", data, indices, segment_ids, num_segments)


def _of_segments(
    kind: str, data: object, indices: object, segment_ids: object, num_segments: object
) -> Tensor:
    picked, ids = gather(data, indices), convert_to_tensor(segment_ids)
    known = np.asarray(ids)  # a trace falls back to running per element, unless the number is given
    if (np.diff(known) < 0).any():
        raise InvalidArgumentError("segment_ids must be sorted.", fix="sort the rows by segment.")
    last = int(known.max(initial=-1)) + 1
    count = last if num_segments is None else known_integer(num_segments, "num_segments")
    if count < last:
        raise InvalidArgumentError(
            f"There are {last} segments, but num_segments is {count}.",
            fix="pass a larger number, or leave it out.",
        )
    compute = getattr(segments, f"unsorted_segment_{kind}")
    return compute(picked, ids, count)


# --- what the functions share ------------------------------------------------------------------


def _values(value: Any) -> Any:
    return value.values if isinstance(value, SparseTensor) else value


def _check_same_shape(function: str, one: tuple[int, ...], two: tuple[int, ...]) -> None:
    if one != two:
        raise InvalidArgumentError(
            f"{function} needs tensors of one shape, but got {one} and {two}.",
            fix="change one with evenfeed.sparse.reshape or reset_shape.",
        )


def _joined(
    function: str, a: SparseTensor, b: SparseTensor, combine: Any
) -> tuple[SparseTensor, Array]:
    """Combine the values at the places of both tensors, and tell which places both have. A missing value is 0."""
    _check_same_shape(function, shape_of(a), shape_of(b))
    if a.dtype != b.dtype:
        raise InvalidArgumentError(
            f"{function} needs tensors of one dtype, but got {a.dtype.name} and {b.dtype.name}.",
            fix="convert one with evenfeed.cast.",
        )
    places, groups = grouped(np.concatenate([a.indices, b.indices]))
    count = len(a.values)
    sides = np.zeros((2, len(places)), a.dtype)
    has = np.zeros((2, len(places)), np.bool_)
    for side, (own, values) in enumerate([(groups[:count], a.values), (groups[count:], b.values)]):
        np.add.at(sides[side], own, values)
        has[side, own] = True
    return SparseTensor(places, combine(*sides), a.dense_shape), has[0] & has[1]


def _reduced(  # noqa: PLR0913, PLR0917 - the arguments of both reductions
    function: str, combine: Any, sp_input: Any, axis: object, keepdims: bool, is_sparse: bool
) -> Any:
    tensor = checked(function, sp_input)
    rank = len(tensor.dense_shape)
    given: Any = range(rank) if axis is None else np.asarray(axis).reshape(-1).tolist()
    axes = sorted({axis_of(rank, each) for each in given})
    kept = [each for each in range(rank) if each not in axes]
    places, groups = grouped(tensor.indices[:, kept])
    found = _combined(combine, tensor.values, groups, len(places))
    shape = tensor.dense_shape[kept]
    if keepdims:
        whole = np.ones(rank, np.int64)
        whole[kept] = shape
        wide = np.zeros((len(places), rank), np.int64)
        wide[:, kept] = places
        places, shape = wide, whole
    result = SparseTensor(places, found, shape)
    return result if is_sparse else to_dense(result)


def _combined(combine: Any, values: Array, groups: Array, count: int) -> Array:
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(count))
    if not count:
        return np.zeros(0, values.dtype)
    return combine.reduceat(values[order], starts, dtype=values.dtype)
