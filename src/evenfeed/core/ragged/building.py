"""Builds ragged tensors from values and a description of their rows."""

import math
import operator
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import described
from evenfeed.core.gradients.followed_values import host_array
from evenfeed.core.lazy import LazyModule
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged import row_partitions
from evenfeed.core.ragged.row_partitions import checked_splits, whole_vector
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.text.text_columns import Texts

if TYPE_CHECKING:
    from evenfeed.core.ragged import ragged_conversion
else:  # it needs the class that is built here
    ragged_conversion = LazyModule("evenfeed.core.ragged.ragged_conversion")


class BuiltFromRows(ABC):
    """The `from_…` methods of RaggedTensor."""

    __slots__ = ()

    @abstractmethod
    def __init__(self, values: Any, splits: Array, uniform: int | None = None) -> None: ...

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The number of rows, as an int."""

    @abstractmethod
    def with_row_splits_dtype(self, dtype: Any) -> Self:
        """Return a ragged tensor whose row splits have this dtype."""

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Self:
        """Build a ragged tensor; row i has the values from `row_splits[i]` to `row_splits[i + 1]`."""
        del name
        held, splits = held_values(values), whole_vector(row_splits, "row_splits")
        return cls(held, checked_splits(splits, len_of(held)) if validate else splits)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Self:
        """Build a ragged tensor from the length of each row."""
        del name
        held, lengths = held_values(values), whole_vector(row_lengths, "row_lengths")
        return cls(held, row_partitions.from_lengths(lengths, len_of(held), check=validate))

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> Self:
        """Build a ragged tensor from the position where each row starts."""
        held, starts = held_values(values), whole_vector(row_starts, "row_starts")
        splits = np.append(starts, np.array(len_of(held), starts.dtype))
        return cls.from_row_splits(held, splits, name, validate)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> Self:
        """Build a ragged tensor from the position where each row ends."""
        limits = whole_vector(row_limits, "row_limits")
        splits = np.concatenate([np.zeros(1, limits.dtype), limits])
        return cls.from_row_splits(values, splits, name, validate)

    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: Any,
        nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Build a ragged tensor from the row number of each value."""
        del name, validate
        held, rowids = held_values(values), whole_vector(value_rowids, "value_rowids")
        rows = None if nrows is None else operator.index(nrows)
        return cls(held, row_partitions.from_rowids(rowids, rows, len_of(held)))

    @classmethod
    def from_uniform_row_length(
        cls,
        values: Any,
        uniform_row_length: Any,
        nrows: Any = None,
        validate: bool = True,
        name: str | None = None,
    ) -> Self:
        """Build a ragged tensor whose rows all have one length; their values may still be ragged."""
        del name, validate
        held, length = held_values(values), operator.index(uniform_row_length)
        rows = None if nrows is None else operator.index(nrows)
        return cls(held, row_partitions.from_uniform(length, len_of(held), rows), length)

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: Any,
        nested_row_splits: Any,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Build a ragged tensor with several ragged axes; the splits of the outermost axis come first."""
        found = flat_values
        for splits in reversed(list(nested_row_splits)):
            found = cls.from_row_splits(found, splits, name, validate)
        return found

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: Any,
        nested_row_lengths: Any,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Build a ragged tensor with several ragged axes; the lengths of the outermost rows come first."""
        found = flat_values
        for lengths in reversed(list(nested_row_lengths)):
            found = cls.from_row_lengths(found, lengths, name, validate)
        return found

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Build a ragged tensor with several ragged axes from row numbers; the outermost come first."""
        rowids = list(nested_value_rowids)
        counts = [None] * len(rowids) if nested_nrows is None else list(nested_nrows)
        found = flat_values
        for ids, count in zip(reversed(rowids), reversed(counts), strict=True):
            found = cls.from_value_rowids(found, ids, count, name, validate)
        return found

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> Self:
        """Convert a dense tensor.

        Args:
            tensor: The tensor, with at least two axes.
            lengths: How many values of each row to keep; for several ragged axes a list or tuple of such lists, the
                outermost first.
            padding: Drop trailing values that equal this one.
            ragged_rank: How many axes become ragged.
            name: Accepted for compatibility.
            row_splits_dtype: int64 or int32.
        """
        del name
        array = host_array(tensor)
        ragged_conversion.check_arguments(array, lengths, padding, ragged_rank)
        if lengths is not None or padding is not None:
            own, inner = ragged_conversion.own_and_inner(lengths)
            kept = ragged_conversion.kept_values(array, own, padding)
            values = cls.from_tensor(array[kept], inner) if inner else array[kept]
            found = cls.from_row_lengths(values, kept.sum(axis=1))
        else:
            shape = array.shape
            found = array.reshape(math.prod(shape[: ragged_rank + 1]), *shape[ragged_rank + 1 :])
            for axis in range(ragged_rank, 0, -1):
                rows = math.prod(array.shape[:axis])
                found = cls.from_uniform_row_length(found, array.shape[axis], nrows=rows)
        return cast("Self", found).with_row_splits_dtype(row_splits_dtype)

    @classmethod
    def from_sparse(
        cls, st_input: SparseTensor, name: str | None = None, row_splits_dtype: Any = dtypes.int64
    ) -> Self:
        """Convert a sparse matrix whose rows have their values at the left, without gaps."""
        rows, columns = st_input.indices.T
        found = cls.from_value_rowids(st_input.values, rows, st_input.dense_shape[0], name)
        ragged_conversion.check_no_gaps(cast("Any", found), rows, columns)
        return found.with_row_splits_dtype(row_splits_dtype)


def held_values(values: Any) -> Any:
    """Return what a ragged tensor stores: a host array, a ragged tensor, or text in a buffer."""
    if isinstance(values, (BuiltFromRows, Texts)):
        return values
    array = host_array(values)
    if not array.ndim:
        raise ValueError(
            described(
                "The values of a RaggedTensor need an axis, but got a scalar.", fix="pass a list."
            )
        )
    return computed_tensor(array)


def len_of(values: Any) -> int:
    """Return the length of the first axis of an array or a ragged tensor."""
    return values.row_count if isinstance(values, BuiltFromRows) else len(values)
