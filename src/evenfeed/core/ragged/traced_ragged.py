"""Methods of ragged tensors while a user function is traced: `to_tensor` and `row_lengths`. Each records a kernel."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core.block import Column, items
from evenfeed.core.conversion import Array
from evenfeed.core.ragged.ragged_conversion import dense_texts
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor, slice_of
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.traced.kernel_stages import Kernel, results_of

# Elements with fewer rows are converted together, and with at most so many times the memory that they need.
_FEW_ROWS, _MOST_WASTE = 64, 4
_NUMBERS: Final = (bool, int, float, str, bytes)


def to_tensor(rows: Any, default: Any, shape: ShapeLike) -> Any:
    """Record `rows.to_tensor(default, shape=shape)`; None if the arguments are not known before the element."""
    known = default is None or isinstance(default, _NUMBERS)
    if not known:
        return None
    lengths = None if shape is None else tuple(TensorShape(shape))
    found = results_of(MakeDense(default, lengths), rows)
    return None if found is None else found[0]


def row_lengths(rows: Any) -> Any:
    """Record `rows.row_lengths()`."""
    found = results_of(MeasureRows(), rows)
    return None if found is None else found[0]


@final
@dataclass(frozen=True)
class MakeDense(Kernel):
    """Converts each element to a dense tensor.

    Attributes:
        default: What fills short rows.
        shape: The asked shape; None for the longest rows.
    """

    default: Any
    shape: tuple[int | None, ...] | None

    stays_on_host: ClassVar[bool] = True
    takes_ragged: ClassVar[bool] = True

    def specs(self, *given: RaggedTensorSpec) -> list[TensorSpec]:
        spec = given[0]
        if self.shape is None or spec.shape.rank is None:
            return [TensorSpec(spec.shape, spec.dtype)]
        if len(self.shape) != spec.shape.rank:
            raise TypeError("The asked shape has another rank.")
        pairs = zip(self.shape, spec.shape, strict=True)
        return [TensorSpec([b if a is None else a for a, b in pairs], spec.dtype)]

    def run(self, *columns: Column) -> list[Column]:
        column = columns[0]
        together = self._together(column) if isinstance(column, RaggedTensor) else None
        return [list(map(self._one, items(column))) if together is None else together]

    def _one(self, rows: RaggedTensor) -> Array:
        shape = TensorShape(self.shape)
        if isinstance(rows.flat_held, Texts):
            return np.asarray(dense_texts(rows, self.default, shape))
        return np.asarray(rows.to_tensor(self.default, shape=shape))

    def _together(self, column: RaggedTensor) -> list[Array] | None:
        """Convert the rows of all elements at once, and cut the result; None if elements are large or differ much."""
        inner, starts = column.held, column.splits
        count = len(starts) - 1
        total = int(starts[-1] - starts[0])
        if self.shape is not None or isinstance(inner.held, RaggedTensor):
            return None
        if count < 2 or total > count * _FEW_ROWS:
            return None
        counts, lengths = np.diff(starts), np.diff(inner.splits)
        widths = np.zeros(count, np.int64)
        filled = np.flatnonzero(counts)
        if len(filled):
            widths[filled] = np.maximum.reduceat(lengths, starts[:-1][filled])
        if total * int(widths.max(initial=0)) > _MOST_WASTE * max(1, int((widths * counts).sum())):
            return None
        whole = self._one(slice_of(inner, int(starts[0]), int(starts[-1])))
        ends = (starts - starts[0]).tolist()
        bounds = zip(ends, ends[1:], widths.tolist(), strict=False)
        return [whole[start:stop, :width] for start, stop, width in bounds]


@final
@dataclass(frozen=True)
class MeasureRows(Kernel):
    """Returns the row lengths of each element."""

    stays_on_host: ClassVar[bool] = True
    takes_ragged: ClassVar[bool] = True

    def specs(self, *given: RaggedTensorSpec) -> list[TensorSpec]:
        shape = given[0].shape
        rows = None if shape.rank is None else shape[0]
        return [TensorSpec([rows], given[0].row_splits_dtype)]

    def run(self, *columns: Column) -> list[Column]:
        column = columns[0]
        if isinstance(column, RaggedTensor):
            inner = column.held
            return [RaggedTensor(np.diff(inner.splits), column.splits)]
        return [[np.diff(rows.splits) for rows in items(column)]]
