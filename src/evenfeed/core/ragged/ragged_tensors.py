"""`RaggedTensor`: rows of different lengths, as one array of values and where each row starts. It stays on the host."""

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.lazy import LazyModule
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged import row_partitions
from evenfeed.core.ragged.building import BuiltFromRows, held_values, len_of
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import Specified
from evenfeed.core.structure import Composite
from evenfeed.core.tensor_types import host_tensor
from evenfeed.core.text.text_columns import Texts

if TYPE_CHECKING:
    from evenfeed.core.ragged import ragged_conversion, ragged_operators
else:  # they need the class below
    ragged_conversion = LazyModule("evenfeed.core.ragged.ragged_conversion")
    ragged_operators = LazyModule("evenfeed.core.ragged.ragged_operators")


def _both_ways(name: str) -> tuple[Any, Any]:
    """Return the methods of a binary operator, with the ragged tensor on the left and on the right."""
    compute: Callable[[Any, Any], Any] = getattr(operator, name)

    def left(rows: "RaggedTensor", other: object) -> Any:
        return ragged_operators.computed(compute, rows, other)

    def right(rows: "RaggedTensor", other: object) -> Any:
        return ragged_operators.computed(compute, other, rows)

    return left, right


def _alone(name: str) -> Any:
    """Return the method of an operator without another operand."""
    compute: Callable[[Any], Any] = getattr(operator, name)

    def method(rows: "RaggedTensor") -> "RaggedTensor":
        ragged_operators.check_dtype(compute, rows)
        return rows.with_flat_values(compute(rows.flat_values))

    return method


@final
class RaggedTensor(BuiltFromRows, Composite, Specified):
    """A tensor whose rows may have different lengths. Build it with `tf.ragged.constant` or a `from_…` method.

    Examples:
        >>> import evenfeed as tf
        >>> rows = tf.ragged.constant([[1, 2, 3], [], [4]])
        >>> rows
        <tf.RaggedTensor [[1, 2, 3], [], [4]]>
        >>> rows.to_tensor().tolist()
        [[1, 2, 3], [0, 0, 0], [4, 0, 0]]
    """

    __slots__ = ("_splits", "_uniform", "_values")

    # So that NumPy arrays let this class do arithmetic.
    __array_priority__ = 2.0
    __array_ufunc__ = None

    def __init__(self, values: Any, splits: Array, uniform: int | None = None) -> None:
        self._values = values
        self._splits = splits
        self._uniform = uniform

    @property
    def values(self) -> Any:
        """The values of all rows: an array, or a ragged tensor if inner axes are ragged too."""
        if isinstance(self._values, Texts):
            self._values = as_tensor(self._values)
        return host_tensor(self._values)

    @property
    def held(self) -> Any:
        """The values as they are stored: an array, a ragged tensor, or text in a buffer."""
        return self._values

    @property
    def flat_held(self) -> Any:
        """The values of the innermost rows as they are stored: an array, or text in a buffer."""
        inner = self._values
        return inner.flat_held if isinstance(inner, RaggedTensor) else inner

    @property
    def flat_values(self) -> Any:
        """The values of the innermost rows, as one array."""
        inner = self.values
        return inner.flat_values if isinstance(inner, RaggedTensor) else inner

    @property
    def row_splits(self) -> Any:
        """Where each row starts in `values`, and where the last one ends."""
        return computed_tensor(self._splits)

    @property
    def splits(self) -> Array:
        """The row splits as a plain array."""
        return self._splits

    @property
    def uniform(self) -> int | None:
        """The length of all rows, if the tensor was built with one; else None."""
        return self._uniform

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The row splits of all ragged axes, the outermost first."""
        inner = self._values
        below = inner.nested_row_splits if isinstance(inner, RaggedTensor) else ()
        return (self.row_splits, *below)

    @property
    def uniform_row_length(self) -> Any:
        """The length of all rows, if the tensor was built with one; else None."""
        return None if self._uniform is None else computed_tensor(np.int64(self._uniform))

    @property
    def ragged_rank(self) -> int:
        """The number of axes that row splits describe."""
        inner = self._values
        return 1 + (inner.ragged_rank if isinstance(inner, RaggedTensor) else 0)

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return dtypes.as_dtype(self.flat_held.dtype)

    @property
    def shape(self) -> TensorShape:
        """The shape, with None for axes whose length differs."""
        inner = TensorShape(self._values.shape)
        return TensorShape([self.row_count, self._uniform, *list(inner)[1:]])

    def get_shape(self) -> TensorShape:
        """Return the shape, with None for axes whose length differs."""
        return self.shape

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        splits = dtypes.as_dtype(self._splits.dtype)
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank, splits)

    @property
    def row_count(self) -> int:
        return len(self._splits) - 1

    def nrows(self, out_type: Any = None, name: str | None = None) -> Any:
        """Return the number of rows."""
        del name
        dtype = self._splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        return computed_tensor(np.asarray(self.row_count, dtype))

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """Return the length of each row; with `axis` above 1, of inner rows, as a ragged tensor."""
        del name
        if axis == 0:
            return self.nrows()
        if axis > 1:
            return self.with_values(_inner_lengths(self._values, axis - 1))
        return computed_tensor(np.diff(self._splits))

    def nested_row_lengths(self, name: str | None = None) -> tuple[Any, ...]:
        """Return the row lengths of all ragged axes, the outermost first."""
        del name
        return tuple(computed_tensor(np.diff(splits)) for splits in self.nested_row_splits)

    def row_starts(self, name: str | None = None) -> Any:
        """Return where each row starts in `values`."""
        del name
        return computed_tensor(self._splits[:-1])

    def row_limits(self, name: str | None = None) -> Any:
        """Return where each row ends in `values`."""
        del name
        return computed_tensor(self._splits[1:])

    def value_rowids(self, name: str | None = None) -> Any:
        """Return the row number of each value."""
        del name
        lengths = np.diff(self._splits)
        return computed_tensor(np.repeat(np.arange(len(lengths), dtype=lengths.dtype), lengths))

    def nested_value_rowids(self, name: str | None = None) -> tuple[Any, ...]:
        """Return the row numbers of all ragged axes, the outermost first."""
        inner = self._values
        below = inner.nested_value_rowids(name) if isinstance(inner, RaggedTensor) else ()
        return (self.value_rowids(), *below)

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: Any = None
    ) -> Any:
        """Return the smallest dense shape that holds all rows."""
        del name
        dtype = self._splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        widest = int(np.diff(self._splits).max(initial=0))
        inner = self._values
        below = inner.bounding_shape() if isinstance(inner, RaggedTensor) else inner.shape
        whole = np.array([self.row_count, widest, *list(below)[1:]], dtype)
        return computed_tensor(whole if axis is None else whole[host_array(axis)])

    def with_values(self, new_values: Any) -> "RaggedTensor":
        """Return a ragged tensor with the same rows and other values."""
        held = held_values(new_values)
        if len_of(held) != len_of(self._values):
            raise InvalidArgumentError(
                f"The rows have {len_of(self._values)} values, but got {len_of(held)}.",
                fix="pass one value for each value of the tensor.",
            )
        return RaggedTensor(held, self._splits, self._uniform)

    def with_flat_values(self, new_values: Any) -> "RaggedTensor":
        """Return a ragged tensor with the same innermost rows and other values."""
        inner = self._values
        nested = isinstance(inner, RaggedTensor)
        return self.with_values(inner.with_flat_values(new_values) if nested else new_values)

    def with_row_splits_dtype(self, dtype: Any) -> "RaggedTensor":
        """Return a ragged tensor whose row splits have this dtype."""
        known, inner = row_partitions.splits_dtype(dtype), self._values
        values = inner.with_row_splits_dtype(known) if isinstance(inner, RaggedTensor) else inner
        return RaggedTensor(values, self._splits.astype(known), self._uniform)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Merge the axes from `outer_axis` to `inner_axis` into one."""
        first, last = row_partitions.merged_axes(outer_axis, inner_axis, len(self.shape))
        if first == last:
            return self
        if first == 1:
            return _joined_rows(self, last)
        if first > 1:
            return self.with_values(_merged(self.values, first - 1, last - 1))
        return self.values if last == 1 else _merged(self.values, 0, last - 1)

    def rows(self, which: Array) -> "RaggedTensor":
        """Return the rows at some positions, in that order."""
        inner = self._values
        if isinstance(inner, RaggedTensor):
            splits, positions = row_partitions.gathered(self._splits, which)
            return RaggedTensor(inner.rows(positions), splits, self._uniform)
        values, splits = row_partitions.gathered_values(inner, self._splits, which)
        return RaggedTensor(values, splits, self._uniform)

    def row(self, index: int) -> Any:
        """Return one row: a dense tensor, or a ragged one."""
        found = slice_of(self._values, int(self._splits[index]), int(self._splits[index + 1]))
        return as_tensor(found) if isinstance(found, Texts) else host_tensor(found)

    def to_list(self) -> list[Any]:
        """Return the rows as nested lists."""
        values = self._values
        flat = values.to_list() if isinstance(values, RaggedTensor) else values.tolist()
        ends = self._splits.tolist()
        return [flat[a:b] for a, b in pairwise(ends)]

    def numpy(self) -> Array:
        """Return an array of rows: dense if all rows have one length, otherwise an array of arrays."""
        return ragged_conversion.numpy_rows(self)

    def to_tensor(
        self, default_value: Any = None, name: str | None = None, shape: ShapeLike = None
    ) -> Any:
        """Convert to a dense tensor, filling short rows.

        Args:
            default_value: What fills short rows; by default 0, or empty text.
            name: Accepted for compatibility.
            shape: The shape of the result; longer rows are cut. None stands for the longest row.
        """
        del name
        return ragged_conversion.dense(self, default_value, TensorShape(shape))

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Convert to a sparse tensor."""
        del name
        return ragged_conversion.sparse(self)

    def _components(self) -> tuple[Any, ...]:
        return self.flat_values, *self.nested_row_splits

    def _with_components(self, components: Sequence[Any]) -> Any:
        return RaggedTensor.from_nested_row_splits(components[0], components[1:], validate=False)

    def __iter__(self) -> Iterator[Any]:
        return (self.row(index) for index in range(self.row_count))

    def __getitem__(self, key: Any) -> Any:
        return ragged_operators.indexed(self, key)

    def __eq__(self, other: object) -> Any:
        return ragged_operators.computed(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return ragged_operators.computed(operator.ne, self, other)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - like all arrays

    __add__, __radd__ = _both_ways("add")
    __sub__, __rsub__ = _both_ways("sub")
    __mul__, __rmul__ = _both_ways("mul")
    __truediv__, __rtruediv__ = _both_ways("truediv")
    __floordiv__, __rfloordiv__ = _both_ways("floordiv")
    __mod__, __rmod__ = _both_ways("mod")
    __pow__, __rpow__ = _both_ways("pow")
    __and__, __rand__ = _both_ways("and_")
    __or__, __ror__ = _both_ways("or_")
    __xor__, __rxor__ = _both_ways("xor")
    # Python asks the right operand by the mirrored operator.
    __lt__, __le__ = _both_ways("lt")[0], _both_ways("le")[0]
    __gt__, __ge__ = _both_ways("gt")[0], _both_ways("ge")[0]

    __neg__, __abs__, __invert__ = _alone("neg"), _alone("abs"), _alone("invert")

    def __bool__(self) -> bool:
        raise TypeError(
            described(
                "A RaggedTensor cannot be used as a bool.",
                fix="reduce its values, for example x.flat_values.any().",
            )
        )

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {ragged_conversion.text_of(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return RaggedTensor, (self.values, self._splits, self._uniform)


def as_tensor(texts: Texts) -> Any:
    """Return text in a buffer as a tensor."""
    return computed_tensor(np.asarray(texts))


def slice_of(values: Any, start: int, stop: int) -> Any:
    """Return the rows of an array or a ragged tensor from `start` to `stop`, without copying values."""
    if not isinstance(values, RaggedTensor):
        return values[start:stop]
    splits = values.splits[start : stop + 1]
    inner = slice_of(values.held, int(splits[0]), int(splits[-1]))
    return RaggedTensor(inner, splits - splits[0], values.uniform)


def rows_of(rows: RaggedTensor) -> list[Any]:
    """Return the rows: plain arrays, or ragged tensors."""
    inner = rows.held
    if isinstance(inner, RaggedTensor):
        return list(rows)
    values, ends = np.asarray(inner), rows.splits.tolist()
    return [values[start:stop] for start, stop in pairwise(ends)]


def _inner_lengths(values: Any, axis: int) -> Any:
    if isinstance(values, RaggedTensor):
        return values.row_lengths(axis)
    if axis >= values.ndim:
        raise ValueError(
            described(
                f"The tensor has no axis {axis + values.ndim - 1} with rows.",
                fix="pass an axis of the tensor's shape.",
            )
        )
    return np.full(values.shape[:axis], values.shape[axis], np.int64)


def _joined_rows(rows: RaggedTensor, last: int) -> RaggedTensor:
    """Merge the axes from 1 to `last`: the values of inner rows become those of the outer ones."""
    splits, inner = rows.splits, rows.values
    for _ in range(1, last):
        if isinstance(inner, RaggedTensor):
            splits, inner = inner.splits[splits], inner.values
        else:
            splits = splits * inner.shape[1]
            inner = inner.reshape(-1, *inner.shape[2:])
    return RaggedTensor(inner, splits)


def _merged(values: Any, outer: int, inner: int) -> Any:
    if isinstance(values, RaggedTensor):
        return values.merge_dims(outer, inner)
    shape = values.shape
    return values.reshape(*shape[:outer], -1, *shape[inner + 1 :])
