"""Ragged and sparse tensors in pages: each is stored as several arrays, and put together again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TensorSpec, TypeSpec

_NOT_UNIFORM: Final = -1


@final
@dataclass(frozen=True, slots=True)
class CompositeColumn:
    """A column of ragged or sparse tensors.

    Attributes:
        dtype: The dtype of their values.
        splits: The dtype of row splits; None for sparse tensors.
        rank: The number of axes with row splits; 0 for sparse tensors.
    """

    dtype: DType
    splits: DType | None
    rank: int

    @property
    def kinds(self) -> list[DType]:
        """The dtypes of the arrays that make up one tensor."""
        if self.splits is None:
            return [dtypes.int64, self.dtype, dtypes.int64]
        return [self.dtype, dtypes.int64, *[self.splits] * self.rank]

    def arrays_of(self, values: Sequence[Any]) -> list[list[Array]]:
        """Return the arrays of all tensors: for each kind, a column."""
        rows = [_ragged_arrays(v) if self.rank else _sparse_arrays(v) for v in values]
        return [list(column) for column in zip(*rows, strict=True)]

    def value_of(self, arrays: Sequence[Array]) -> Any:
        """Return the tensor that consists of these arrays."""
        if self.splits is None:
            return SparseTensor(*arrays)
        values, uniform, *splits = arrays
        found: Any = values
        for lengths, one in zip(reversed(uniform.tolist()), reversed(splits), strict=True):
            found = RaggedTensor(found, one, None if lengths == _NOT_UNIFORM else lengths)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        splits = None if self.splits is None else dtypes.name_of(self.splits)
        return {"dtype": dtypes.name_of(self.dtype), "splits": splits, "rank": self.rank}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "CompositeColumn":
        """Return what `to_json` encoded."""
        splits = None if data["splits"] is None else dtypes.as_dtype(data["splits"])
        return cls(dtypes.as_dtype(data["dtype"]), splits, int(data["rank"]))


def kind_of(spec: TypeSpec) -> DType | CompositeColumn | None:
    """Return how values with a spec are stored; None if they are None."""
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank:
        return CompositeColumn(spec.dtype, spec.row_splits_dtype, spec.ragged_rank)
    if isinstance(spec, SparseTensorSpec):
        return CompositeColumn(spec.dtype, None, 0)
    return spec.dtype if isinstance(spec, TensorSpec | RaggedTensorSpec) else None


def _ragged_arrays(rows: RaggedTensor) -> list[Array]:
    levels: list[RaggedTensor] = []
    inner: Any = rows
    while isinstance(inner, RaggedTensor):
        levels.append(inner)
        inner = inner.values
    uniform = [_NOT_UNIFORM if level.uniform is None else level.uniform for level in levels]
    return [np.asarray(inner), np.array(uniform, np.int64), *(level.splits for level in levels)]


def _sparse_arrays(value: SparseTensor) -> list[Array]:
    return [np.asarray(array) for array in (value.indices, value.values, value.dense_shape)]
