"""Sparse tensors as text: `serialize_sparse`, `serialize_many_sparse` and `deserialize_many_sparse`."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.tensor_types import host_tensor
from evenfeed.formats.tensor_bytes import parse_tensor, serialize_tensor


def serialize_sparse(sp_input: Any, out_type: Any = dtypes.string, name: str | None = None) -> Any:
    """Return a vector of three texts: the serialized indices, values and shape.

    Examples:
        >>> import evenfeed as tf
        >>> len(tf.io.serialize_sparse(tf.sparse.from_dense([0, 5])))
        3
    """
    _check_type(out_type)
    return host_tensor(_texts(_checked("serialize_sparse", sp_input)))


def serialize_many_sparse(
    sp_input: Any, out_type: Any = dtypes.string, name: str | None = None
) -> Any:
    """Return three texts for each row of the first axis; see `serialize_sparse`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.serialize_many_sparse(tf.sparse.from_dense([[0, 5], [6, 0]])).shape
        (2, 3)
    """
    _check_type(out_type)
    tensor = _checked("serialize_many_sparse", sp_input)
    if len(tensor.dense_shape) < 2:
        raise InvalidArgumentError(
            f"serialize_many_sparse needs a tensor of rank 2 or more, but got rank {len(tensor.dense_shape)}.",
            fix="call serialize_sparse.",
        )
    count = int(tensor.dense_shape[0])
    found = np.empty((count, 3), dtypes.string)
    for row in range(count):
        inside = tensor.indices[:, 0] == row
        found[row] = _texts(
            SparseTensor(tensor.indices[inside, 1:], tensor.values[inside], tensor.dense_shape[1:])
        )
    return host_tensor(found)


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Return the tensor that `serialize_many_sparse` was given; of several texts, with the largest shape.

    Args:
        serialized_sparse: Three texts for each row.
        dtype: The dtype of the values.
        rank: The rank of the result, which is checked.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> texts = tf.io.serialize_many_sparse(tf.sparse.from_dense([[0, 5], [6, 0]]))
        >>> tf.sparse.to_dense(tf.io.deserialize_many_sparse(texts, tf.int32)).tolist()
        [[0, 5], [6, 0]]
    """
    texts = to_array(serialized_sparse)
    if texts.dtype != dtypes.string or texts.ndim != 2 or texts.shape[1] != 3:
        raise InvalidArgumentError(
            f"Serialized sparse tensors are a matrix of three texts in each row, but got {shortened(serialized_sparse)}.",
            fix="pass what serialize_many_sparse returned, or evenfeed.stack of results of serialize_sparse.",
        )
    if not len(texts):
        raise InvalidArgumentError(
            "There are no sparse tensors to deserialize, so their rank is unknown.",
            fix="pass at least one row.",
        )
    rows = [
        [np.asarray(parse_tensor(text, kind)) for text, kind in _kinds(row, dtype)] for row in texts
    ]
    ranks = {len(shape) + 1 for _, _, shape in rows}
    if len(ranks) > 1 or rank not in (None, *ranks):
        raise InvalidArgumentError(
            f"Sparse tensors of the ranks {sorted(ranks)} do not make one of rank {rank or min(ranks)}.",
            fix="pass tensors of one rank, or omit rank.",
        )
    owners = np.repeat(np.arange(len(rows)), [len(values) for _, values, _ in rows])
    places = np.concatenate([indices for indices, _, _ in rows])
    shape = np.array([len(rows), *np.max([shape for _, _, shape in rows], axis=0)], np.int64)
    values = np.concatenate([values for _, values, _ in rows])
    return SparseTensor(np.concatenate([owners[:, None], places], axis=1), values, shape)


def _kinds(row: Array, dtype: Any) -> list[tuple[Any, Any]]:
    return list(zip(row, (dtypes.int64, dtype, dtypes.int64), strict=True))


def _texts(tensor: SparseTensor) -> Array:
    parts = tensor.indices, tensor.values, tensor.dense_shape
    found = np.empty(3, dtypes.string)
    found[:] = [np.asarray(serialize_tensor(part)).item() for part in parts]
    return found


def _checked(function: str, value: Any) -> SparseTensor:
    if isinstance(value, SparseTensor):
        return value
    raise TypeError(
        described(
            f"{function} needs a SparseTensor, but got {type(value).__name__}.",
            fix="convert a dense tensor with evenfeed.sparse.from_dense(x).",
        )
    )


def _check_type(out_type: Any) -> None:
    if dtypes.as_dtype(out_type) != dtypes.string:
        raise InvalidArgumentError(
            f"Sparse tensors are serialized as text, but out_type is {out_type!r}.",
            fix="omit out_type.",
        )
