"""Kernels that parse a whole column of examples: one example per element, or a vector of them."""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np

from evenfeed.core.block import Column
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.traced.kernel_stages import Kernel
from evenfeed.formats.example.dependent_features import dependent_columns
from evenfeed.formats.example.example_batches import fixed_columns
from evenfeed.formats.example.example_lists import Lists, Plain, batch_of, lists_of, single_of
from evenfeed.formats.example.features import Fixed, Placed, Ragged, Sequenced, Varying
from evenfeed.formats.example.ragged_rows import ragged_axes

Feature = TypeVar("Feature")


class ExamplesKernel(Kernel, Generic[Feature]):
    """Parses features of whole columns.

    Args:
        wanted: The features.
        single: Whether elements have one example each; otherwise they may be vectors.
    """

    def __init__(self, wanted: tuple[Feature, ...], single: bool) -> None:
        self._asked = wanted, single

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._asked == getattr(other, "_asked", None)

    def __hash__(self) -> int:
        return hash(self._asked)

    @abstractmethod
    def spec(self, feature: Feature, rows: Sequence[int | None]) -> Any:
        """Return the spec of a feature of one element; `rows` is the shape of its examples."""

    @abstractmethod
    def columns(self, records: Texts, wanted: Sequence[Feature], shape: Any) -> list[Any]:
        """Return the features of examples that have this shape, as columns."""

    @final
    def specs(self, *given: TensorSpec) -> list[Any]:
        wanted, single = self._asked
        shape = given[0].shape
        if shape.rank is None or shape.rank > 1 - single:
            # Only rejects the kernel: parsing without it raises a better error.
            raise TypeError("The text has too many dimensions.")
        return [self.spec(feature, list(shape)) for feature in wanted]

    @final
    def run(self, *columns: Column) -> list[Column]:
        column = columns[0]
        if isinstance(column, list | RaggedTensor) or column is None:
            raise TypeError("The elements have different numbers of examples.")
        records = column.ravel()
        if not isinstance(records, Texts):
            records = Texts.of(records.tolist())
        return self.columns(records, self._asked[0], column.shape)


@final
class FixedKernel(ExamplesKernel[Fixed]):
    """Parses arrays of one shape."""

    def spec(self, feature: Fixed, rows: Sequence[int | None]) -> TensorSpec:
        return TensorSpec([*rows, *feature.shape], feature.dtype)

    def columns(self, records: Texts, wanted: Sequence[Fixed], shape: Any) -> list[Any]:
        found = fixed_columns(records, wanted)
        return [array.reshape(*shape, *array.shape[1:]) for array in found]


@final
class ListsKernel(ExamplesKernel[Plain]):
    """Parses features with any number of values."""

    stays_on_host: ClassVar[bool] = True

    def spec(self, feature: Plain, rows: Sequence[int | None]) -> Any:
        if isinstance(feature, Varying):
            return SparseTensorSpec([*rows, None], feature.dtype)
        if isinstance(feature, Sequenced):
            return TensorSpec([*rows, None, *feature.shape], feature.dtype)
        if not rows:
            return TensorSpec([None], feature.values.dtype)
        return RaggedTensorSpec([*rows, None], feature.values.dtype, 1, feature.splits_dtype)

    def columns(self, records: Texts, wanted: Sequence[Plain], shape: Any) -> list[Any]:
        lists = lists_of(records, wanted)
        return [_column(held, one, shape) for held, one in zip(lists, wanted, strict=True)]


@final
class RowsKernel(ExamplesKernel[Ragged]):
    """Parses values that other features split into rows."""

    stays_on_host: ClassVar[bool] = True

    def spec(self, feature: Ragged, rows: Sequence[int | None]) -> TensorSpec | RaggedTensorSpec:
        shape = [*rows, *[None] * (len(feature.partitions) + 1)]
        rank = len(rows) + ragged_axes(feature)
        if not rank:
            return TensorSpec(shape, feature.values.dtype)
        return RaggedTensorSpec(shape, feature.values.dtype, rank, feature.splits_dtype)

    def columns(self, records: Texts, wanted: Sequence[Ragged], shape: Any) -> list[Any]:
        found = dependent_columns(records, wanted)
        if len(shape) == 1:
            return found
        return [_in_batches(held, one, shape) for held, one in zip(found, wanted, strict=True)]


def _in_batches(rows: RaggedTensor, wanted: Ragged, shape: Sequence[int]) -> RaggedTensor:
    elements, each = shape
    count = None if each else elements
    batches = RaggedTensor.from_uniform_row_length(rows, each, nrows=count)
    return batches.with_row_splits_dtype(wanted.splits_dtype)


@final
class PlacedKernel(ExamplesKernel[Placed]):
    """Parses values with places in a sparse tensor."""

    stays_on_host: ClassVar[bool] = True

    def spec(self, feature: Placed, rows: Sequence[int | None]) -> SparseTensorSpec:
        return SparseTensorSpec([*rows, *[None] * len(feature.size)], feature.values.dtype)

    def columns(self, records: Texts, wanted: Sequence[Placed], shape: Any) -> list[Any]:
        return [_elements(column, shape) for column in dependent_columns(records, wanted)]


def _elements(rows: SparseTensor, shape: Sequence[int]) -> list[SparseTensor]:
    """Return the part of each element of a sparse tensor of all records, whose values are in order."""
    elements, each = shape[0], shape[1] if len(shape) > 1 else 1
    indices, values, size = map(np.asarray, (rows.indices, rows.values, rows.dense_shape[1:]))
    splits = np.searchsorted(indices[:, 0], np.arange(elements + 1) * each).tolist()
    if len(shape) == 1:
        parts, size_of_each = indices[:, 1:], size
    else:
        owners = np.array([each, *[0] * len(size)])
        parts = indices - indices[:, :1] // max(1, each) * owners
        size_of_each = np.array([each, *size])
    return [
        SparseTensor(parts[start:stop], values[start:stop], size_of_each)
        for start, stop in pairwise(splits)
    ]


def _column(held: Lists, wanted: Plain, shape: Sequence[int]) -> Any:
    if len(shape) == 1:
        if isinstance(wanted, Varying):
            return [single_of(one, wanted) for one in held.parts(1)]
        return RaggedTensor(held.values, held.splits)
    elements, each = shape
    if isinstance(wanted, Ragged):
        return _in_batches(RaggedTensor(held.values, held.splits), wanted, shape)
    if not each:
        return [batch_of(held, wanted) for _ in range(elements)]
    return [batch_of(one, wanted) for one in held.parts(each)]
