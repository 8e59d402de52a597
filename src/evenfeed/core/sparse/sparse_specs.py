"""`SparseTensorSpec`: the shape and dtype of a sparse tensor."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy import LazyModule
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.specs import TypeSpec

if TYPE_CHECKING:
    from evenfeed.core.sparse import sparse_tensors
else:  # its class knows its spec
    sparse_tensors = LazyModule("evenfeed.core.sparse.sparse_tensors")


@final
class SparseTensorSpec(BatchableSpec):
    """The spec of a SparseTensor.

    Args:
        shape: The dense shape; None if unknown.
        dtype: The dtype of the values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.SparseTensorSpec([None, 3], tf.int32)
        SparseTensorSpec(TensorShape([None, 3]), tf.int32)
    """

    __slots__ = ("_dtype", "_shape")

    def __init__(self, shape: ShapeLike = None, dtype: Any = dtypes.float32) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)

    @classmethod
    def from_value(cls, value: Any) -> "SparseTensorSpec":
        """Return the spec of a sparse tensor."""
        return cls(value.shape, value.dtype)

    @property
    def shape(self) -> TensorShape:
        """The dense shape."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._dtype

    @property
    def value_type(self) -> type:
        return sparse_tensors.SparseTensor

    @property
    def rows_are_counted(self) -> bool:
        """TensorFlow does not count the rows of sparse tensors."""
        return False

    def batched(self, length: int | None) -> "SparseTensorSpec":
        return SparseTensorSpec(TensorShape([length]).concatenate(self._shape), self._dtype)

    def unbatched(self) -> "SparseTensorSpec":
        shape = None if self._shape.rank is None else self._shape[1:]
        return SparseTensorSpec(shape, self._dtype)

    def stacked(self, values: Sequence[Any]) -> Any:
        """Stack sparse tensors; the batch has the largest of their lengths, as in TensorFlow."""
        if not values:
            shape = [0, *(length or 0 for length in self._shape or ())]
            return sparse_tensors.SparseTensor(
                np.zeros((0, len(shape)), np.int64), np.zeros(0, self._dtype), np.array(shape)
            )
        shapes = [value.dense_shape for value in values]
        if len(set(map(len, shapes))) > 1:
            raise InvalidArgumentError(
                f"SparseTensors of the ranks {sorted(set(map(len, shapes)))} cannot be batched.",
                fix="give all elements the same rank.",
            )
        numbers = np.repeat(np.arange(len(values)), [len(value.values) for value in values])
        inner = np.concatenate([value.indices for value in values])
        return sparse_tensors.SparseTensor(
            np.column_stack([numbers, inner]),
            np.concatenate([value.values for value in values]),
            np.append(len(values), np.max(shapes, axis=0)),
        )

    def rows_of(self, value: Any) -> list[Any]:
        rows, shape = int(value.dense_shape[0]), value.dense_shape[1:]
        order = np.argsort(value.indices[:, 0], kind="stable")
        indices, values = value.indices[order], value.values[order]
        ends = np.searchsorted(indices[:, 0], np.arange(rows + 1)).tolist()
        return [
            sparse_tensors.SparseTensor(indices[a:b, 1:], values[a:b], shape)
            for a, b in pairwise(ends)
        ]

    def stand_in(self, length: int) -> Any:
        shape = [length if dim is None else dim for dim in self._shape or ()]
        dense = np.full(shape, sparse_tensors.empty_value(self._dtype), self._dtype)
        return sparse_tensors.sparse_row(dense, TensorShape(shape))

    def is_subtype_of(self, other: TypeSpec) -> bool:
        return (
            isinstance(other, SparseTensorSpec)
            and self._dtype == other._dtype
            and self._shape.is_subtype_of(other._shape)
        )

    def most_specific_common_supertype(
        self, others: Sequence[TypeSpec]
    ) -> "SparseTensorSpec | None":
        shapes: list[TensorShape] = []
        for other in others:
            if not isinstance(other, SparseTensorSpec) or self._dtype != other._dtype:
                return None
            shapes.append(other._shape)
        return self.with_shape(self._shape.most_specific_common_supertype(shapes))

    def with_shape(self, shape: ShapeLike) -> "SparseTensorSpec":
        """Return the spec with another shape."""
        return SparseTensorSpec(shape, self._dtype)

    def _accepts(self, spec: TypeSpec) -> bool:
        return (
            isinstance(spec, SparseTensorSpec)
            and self._dtype == spec._dtype
            and self._shape.is_compatible_with(spec._shape)
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SparseTensorSpec)
            and self._dtype == other._dtype
            and self._shape == other._shape
        )

    def __hash__(self) -> int:
        return hash((SparseTensorSpec, self._shape, self._dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseTensorSpec, (self._shape, self._dtype)

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self._shape!r}, tf.{dtypes.name_of(self._dtype)})"
