"""`RaggedTensorSpec`: the shape and dtype of a ragged tensor."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy import LazyModule
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.building import len_of
from evenfeed.core.ragged.row_partitions import splits_dtype
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.sparse.sparse_tensors import empty_value
from evenfeed.core.specs import TensorSpec, TypeSpec

if TYPE_CHECKING:
    from evenfeed.core.ragged import ragged_functions, ragged_tensors
else:  # its class knows its spec
    ragged_functions = LazyModule("evenfeed.core.ragged.ragged_functions")
    ragged_tensors = LazyModule("evenfeed.core.ragged.ragged_tensors")


@final
class RaggedTensorSpec(BatchableSpec):
    """The spec of a RaggedTensor.

    Args:
        shape: The shape; ragged axes have length None. None if unknown.
        dtype: The dtype of the values.
        ragged_rank: The number of axes that row splits describe; by default all but the first.
        row_splits_dtype: int64 or int32.

    Examples:
        >>> import evenfeed as tf
        >>> tf.RaggedTensorSpec([None, None], tf.int32)
        RaggedTensorSpec(TensorShape([None, None]), tf.int32, 1, tf.int64)
    """

    __slots__ = ("_dtype", "_ragged_rank", "_shape", "_splits_dtype")

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._splits_dtype = splits_dtype(row_splits_dtype)
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError(
                    described(
                        "RaggedTensorSpec needs ragged_rank, or a shape with a known rank.",
                        fix="pass a shape such as [None, None].",
                    )
                )
            ragged_rank = rank - 1
        if rank is not None and not 0 <= ragged_rank < max(rank, 1):
            raise ValueError(
                described(
                    f"ragged_rank must be less than the rank {rank}, but got {ragged_rank}.",
                    fix="pass the number of axes that row splits describe.",
                )
            )
        self._ragged_rank = ragged_rank

    @classmethod
    def from_value(cls, value: Any) -> "RaggedTensorSpec":
        """Return the spec of a ragged tensor."""
        return value._type_spec

    @property
    def shape(self) -> TensorShape:
        """The shape; ragged axes have length None."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._dtype

    @property
    def ragged_rank(self) -> int:
        """The number of axes that row splits describe. With 0, values are plain tensors."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        """The dtype of the row splits."""
        return self._splits_dtype

    @property
    def value_type(self) -> type:
        return ragged_tensors.RaggedTensor

    def batched(self, length: int | None) -> "RaggedTensorSpec":
        return self.with_shape(
            TensorShape([length]).concatenate(self._shape), self._ragged_rank + 1
        )

    def unbatched(self) -> TypeSpec:
        shape = None if self._shape.rank is None else self._shape[1:]
        if self._ragged_rank == 0:
            return TensorSpec(shape, self._dtype)
        return self.with_shape(shape, self._ragged_rank - 1)

    def stacked(self, values: Sequence[Any]) -> Any:
        parts = list(values) or [self.stand_in(0)]
        if self._ragged_rank == 0:
            inner, lengths = self._concatenated(parts), map(len, parts)
        else:
            parts = list(map(self.as_value, parts))
            inner, lengths = ragged_functions.joined(parts), map(len_of, parts)
        splits = np.fromiter(accumulate(lengths, initial=0), np.int64, len(parts) + 1)
        length = self._shape[0] if self._shape.rank else None
        rows = ragged_tensors.RaggedTensor(inner, splits, length)
        rows = rows if values else rows.rows(np.zeros(0, np.int64))
        return rows.with_row_splits_dtype(self._splits_dtype)

    def column(self, values: Any) -> "ragged_tensors.RaggedTensor | None":
        """Return values with this spec, given as a column of a Block, as rows of a ragged tensor; None if they differ.

        Args:
            values: A ragged tensor, or an array or text with a leading axis.
        """
        length = self._shape[0] if self._shape.rank else None
        if isinstance(values, self.value_type):
            if values.ragged_rank != self._ragged_rank + 1:
                return None
            rows = ragged_tensors.RaggedTensor(values.held, values.splits, length)
        elif self._ragged_rank == 0 and values is not None and values.ndim > 1:
            count, each = values.shape[:2]
            splits = np.arange(count + 1, dtype=np.int64) * each
            flat = values.reshape(count * each, *values.shape[2:])
            rows = ragged_tensors.RaggedTensor(flat, splits, length)
        else:
            return None
        return rows.with_row_splits_dtype(self._splits_dtype)

    def _concatenated(self, rows: Sequence[Any]) -> Any:
        try:
            return computed_tensor(np.concatenate(rows))
        except ValueError:
            shapes = " and ".join(map(str, dict.fromkeys(row.shape for row in rows)))
            raise InvalidArgumentError(
                f"Rows of ragged rank 0 may differ in their first length only, but have the shapes {shapes}.",
                fix="make them ragged tensors, or call ragged_batch on tensors of unknown lengths.",
            ) from None

    def rows_of(self, value: Any) -> Any:
        is_ragged = isinstance(value, self.value_type)
        return value if is_ragged else np.asarray(value)  # plain tensors have plain rows

    def stand_in(self, length: int) -> Any:
        shape = [length if dim is None else dim for dim in self._shape or ()]
        return self.as_value(np.full(shape, empty_value(self._dtype), self._dtype))

    def as_value(self, value: Any) -> Any:
        """Return a dense array as a value of this spec; others unchanged."""
        if self._ragged_rank == 0 or isinstance(value, self.value_type):
            return value
        rows = ragged_tensors.RaggedTensor.from_tensor(
            value, ragged_rank=self._ragged_rank, row_splits_dtype=self._splits_dtype
        )
        return _uniform_where_known(rows, list(self._shape)[1:] if self._shape.rank else [])

    def as_argument(self) -> TypeSpec:
        """Return a TensorSpec if values are plain tensors."""
        return self if self._ragged_rank else TensorSpec(self._shape, self._dtype)

    def is_subtype_of(self, other: TypeSpec) -> bool:
        return (
            isinstance(other, RaggedTensorSpec)
            and self._frame == other._frame
            and self._shape.is_subtype_of(other._shape)
        )

    def most_specific_common_supertype(
        self, others: Sequence[TypeSpec]
    ) -> "RaggedTensorSpec | None":
        shapes: list[TensorShape] = []
        for other in others:
            if not isinstance(other, RaggedTensorSpec) or self._frame != other._frame:
                return None
            shapes.append(other._shape)
        return self.with_shape(self._shape.most_specific_common_supertype(shapes))

    def with_shape(self, shape: ShapeLike, ragged_rank: int | None = None) -> "RaggedTensorSpec":
        """Return the spec with another shape, and maybe another ragged rank."""
        rank = self._ragged_rank if ragged_rank is None else ragged_rank
        return RaggedTensorSpec(shape, self._dtype, rank, self._splits_dtype)

    def with_dtype(self, dtype: DType) -> "RaggedTensorSpec":
        """Return the spec with another dtype of the values."""
        return RaggedTensorSpec(self._shape, dtype, self._ragged_rank, self._splits_dtype)

    def _accepts(self, spec: TypeSpec) -> bool:
        if self._ragged_rank == 0 and isinstance(spec, TensorSpec):
            return self.as_argument().is_compatible_with(spec)
        return (
            isinstance(spec, RaggedTensorSpec)
            and self._frame == spec._frame
            and self._shape.is_compatible_with(spec._shape)
        )

    @property
    def _frame(self) -> tuple[DType, int, DType]:
        return self._dtype, self._ragged_rank, self._splits_dtype

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RaggedTensorSpec)
            and self._frame == other._frame
            and self._shape == other._shape
        )

    def __hash__(self) -> int:
        return hash((self._shape, self._frame))

    def __reduce__(self) -> tuple[Any, ...]:
        return RaggedTensorSpec, (self._shape, *self._frame)

    def __repr__(self) -> str:
        dtype, rank, splits = self._frame
        return (
            f"RaggedTensorSpec({self._shape!r}, tf.{dtypes.name_of(dtype)}, {rank}, "
            f"tf.{dtypes.name_of(splits)})"
        )


def _uniform_where_known(rows: Any, lengths: Sequence[int | None]) -> Any:
    """Return rows whose axes have one length only where it is known; other values may have other lengths there."""
    if not isinstance(rows, ragged_tensors.RaggedTensor):
        return rows
    inner = _uniform_where_known(rows.held, lengths[1:])
    return ragged_tensors.RaggedTensor(inner, np.asarray(rows.row_splits), *lengths[:1])
