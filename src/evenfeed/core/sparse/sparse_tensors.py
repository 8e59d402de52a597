"""`SparseTensor`: the nonempty values of an array, with their indices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError, InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.specs import Specified
from evenfeed.core.structure import Composite
from evenfeed.core.tensor_types import host_tensor


@final
@dataclass(frozen=True, eq=False)
class SparseTensor(Composite, Specified):
    """An array that stores only some of its values. It stays on the host: call `to_dense` before a step.

    Attributes:
        indices: The index of each value, one row per value.
        values: The values.
        dense_shape: The shape of the dense array.

    Examples:
        >>> import evenfeed as tf
        >>> row = tf.SparseTensor(indices=[[0], [2]], values=[5, 7], dense_shape=[3])
        >>> tf.sparse.to_dense(row)
        array([5, 0, 7], dtype=int32)
    """

    indices: Array
    values: Array
    dense_shape: Array

    def __post_init__(self) -> None:
        for name, dtype in (
            ("indices", dtypes.int64),
            ("values", None),
            ("dense_shape", dtypes.int64),
        ):
            array = host_array(getattr(self, name), dtype)
            object.__setattr__(self, name, host_tensor(array))
        shapes = [part.shape for part in (self.indices, self.values, self.dense_shape)]
        count, rank = shapes[1:]
        if len(count) != 1 or len(rank) != 1 or shapes[0] != (*count, *rank):
            raise ValueError(
                described(
                    "indices, values and dense_shape must have the shapes [count, rank], [count] and [rank], but have "
                    f"{', '.join(str(list(shape)) for shape in shapes)}.",
                    fix="pass one row of indices for each value, and one length for each axis.",
                )
            )

    def _components(self) -> tuple[Array, ...]:
        return self.indices, self.values, self.dense_shape

    def _with_components(self, components: Sequence[Any]) -> "SparseTensor":
        return SparseTensor(*components)

    @property
    def dtype(self) -> dtypes.DType:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense array."""
        return TensorShape(self.dense_shape.tolist())

    def get_shape(self) -> TensorShape:
        """Return the shape of the dense array."""
        return self.shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Check that the tensor has this shape, in which None stands for any length.

        Raises:
            ValueError: The tensor has another shape.
        """
        self.shape.assert_is_compatible_with(shape)

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> "SparseTensor":
        """Make a sparse tensor of something with `indices`, `values` and `dense_shape`."""
        given = sparse_tensor_value
        return cls(given.indices, given.values, given.dense_shape)

    def with_values(self, new_values: Any) -> "SparseTensor":
        """Return a sparse tensor with other values at the same indices."""
        values = host_array(new_values)
        if values.shape[:1] != self.values.shape[:1]:
            raise ValueError(
                described(
                    f"There are {len(self.values)} indices, but got values of shape {values.shape}.",
                    fix="pass one value for each index.",
                )
            )
        return SparseTensor(self.indices, values, self.dense_shape)

    def __mul__(self, other: Any) -> "SparseTensor":
        return self.with_values(self.values * self._beside(other))

    def __truediv__(self, other: Any) -> "SparseTensor":
        beside = self._beside(other)
        wide = self.dtype in (dtypes.int32, dtypes.int64)  # TensorFlow divides them as float64
        return self.with_values(
            np.true_divide(self.values, beside, dtype=np.float64 if wide else None)
        )

    def _beside(self, other: Any) -> Array:
        """Return the value of a dense tensor at each index. It is broadcast to the dense shape."""
        dense = host_array(other, self.dtype)
        try:
            whole = np.broadcast_to(dense, tuple(self.dense_shape.tolist()))
        except ValueError:
            raise InvalidArgumentError(
                f"A tensor of shape {dense.shape} does not broadcast to the shape {self.shape}.",
                fix="pass a number, or a tensor that broadcasts to the sparse one.",
            ) from None
        return whole[tuple(self.indices.T)]

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec.from_value(self)


def to_dense(
    sp_input: Any,
    default_value: Any = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Array:
    """Convert a sparse tensor to a dense array.

    Args:
        sp_input: The sparse tensor.
        default_value: The value at all other indices; by default 0, or empty bytes for text.
        validate_indices: Whether an index that is not sorted, or that occurs twice, is an error.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> row = tf.SparseTensor(indices=[[1]], values=["b"], dense_shape=[2])
        >>> tf.sparse.to_dense(row, default_value="a")
        array([b'a', b'b'], dtype=object)
    """
    del name
    if not isinstance(sp_input, SparseTensor):
        raise TypeError(
            described(
                f"to_dense needs a SparseTensor, but got {type(sp_input).__name__}.",
                fix="pass a SparseTensor, such as parse_example returns for a VarLenFeature.",
            )
        )
    _check_indices(sp_input, in_order=validate_indices)
    dtype = sp_input.dtype
    empty = empty_value(dtype) if default_value is None else host_array(default_value, dtype).item()
    dense = np.full(tuple(sp_input.dense_shape), empty, dtype)
    # A tensor without axes has no indices to write at, so that it is written as a vector.
    places = tuple(sp_input.indices.T) or (np.zeros(len(sp_input.values), np.int64),)
    dense.reshape(dense.shape or (1,))[places] = sp_input.values
    return host_tensor(dense)


def _check_indices(tensor: SparseTensor, *, in_order: bool) -> None:
    """Check that indices are in range, and in order if asked."""
    indices, shape = tensor.indices, tensor.dense_shape
    outside = ((indices < 0) | (indices >= shape)).any(axis=1)
    if outside.any():
        raise InvalidArgumentError(
            f"The index {indices[outside][0].tolist()} is outside of the shape {tensor.shape}.",
            fix="pass a larger dense_shape.",
        )
    if not in_order or len(indices) < 2 or not indices.shape[1]:
        return
    flat = np.ravel_multi_index(tuple(indices.T), tuple(shape.tolist()))
    if (np.diff(flat) <= 0).any():
        raise InvalidArgumentError(
            "The indices of a sparse tensor must be in order, without repetition.",
            fix="sort them with evenfeed.sparse.reorder, or pass validate_indices=False.",
        )


def sparse_row(tensor: Any, shape: TensorShape) -> SparseTensor:
    """Return all values of a tensor as a sparse tensor of a shape that may be larger; None is its own length."""
    array = host_array(tensor)
    if array.ndim != shape.rank:
        raise InvalidArgumentError(
            f"The row shape {shape} does not fit a tensor of shape {array.shape}.",
            fix="pass one length for each axis of the elements.",
        )
    lengths = [own if dim is None else dim for own, dim in zip(array.shape, shape, strict=True)]
    if any(own > length for own, length in zip(array.shape, lengths, strict=True)):
        raise DataLossError(
            f"A tensor of shape {array.shape} does not fit in the row shape {shape}.",
            fix="pass larger lengths, or None.",
        )
    indices = np.argwhere(np.ones(array.shape, np.bool_))
    return SparseTensor(indices, array.reshape(-1), np.array(lengths, np.int64))


def empty_value(dtype: dtypes.DType) -> Any:
    """Return the default value of a dtype: 0, or empty bytes for text."""
    return b"" if dtype == dtypes.string else 0
