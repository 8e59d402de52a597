"""`SparseTensor`: the values of an array that are there, and where they stand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.errors import described
from evenfeed.core.structure import Composite


@final
@dataclass(frozen=True, eq=False)
class SparseTensor(Composite):
    """An array of which only some values are written down. Datasets hold none: make it dense before.

    Attributes:
        indices: Where each value stands, one row for each.
        values: The values.
        dense_shape: The shape of the whole.

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
            object.__setattr__(self, name, to_array(getattr(self, name), dtype))

    def _components(self) -> tuple[Array, ...]:
        return self.indices, self.values, self.dense_shape

    def _with_components(self, components: Sequence[Any]) -> "SparseTensor":
        return SparseTensor(*components)

    @property
    def dtype(self) -> dtypes.DType:
        """That of the values."""
        return self.values.dtype


def to_dense(sp_input: Any, default_value: Any = None, name: str | None = None) -> Array:
    """Return a sparse tensor as an array.

    Args:
        sp_input: The sparse tensor.
        default_value: What stands where it has no value; by default 0, or no bytes.
        name: Taken for compatibility.

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
                f"to_dense takes a SparseTensor, but got {type(sp_input).__name__}.",
                fix="pass what parse_example returned for a VarLenFeature.",
            )
        )
    dtype = sp_input.dtype
    empty = empty_value(dtype) if default_value is None else to_array(default_value, dtype).item()
    dense = np.full(tuple(sp_input.dense_shape), empty, dtype)
    dense[tuple(sp_input.indices.T)] = sp_input.values
    return dense


def empty_value(dtype: dtypes.DType) -> Any:
    """Return what stands where there is nothing: 0, or no bytes."""
    return b"" if dtype == dtypes.string else 0
