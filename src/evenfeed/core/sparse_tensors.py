"""`SparseTensor`: the nonempty values of an array, with their indices."""

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
    """An array that stores only some of its values. Datasets cannot hold it: call `to_dense` first.

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
            object.__setattr__(self, name, to_array(getattr(self, name), dtype))

    def _components(self) -> tuple[Array, ...]:
        return self.indices, self.values, self.dense_shape

    def _with_components(self, components: Sequence[Any]) -> "SparseTensor":
        return SparseTensor(*components)

    @property
    def dtype(self) -> dtypes.DType:
        """The dtype of the values."""
        return self.values.dtype


def to_dense(sp_input: Any, default_value: Any = None, name: str | None = None) -> Array:
    """Convert a sparse tensor to a dense array.

    Args:
        sp_input: The sparse tensor.
        default_value: The value at all other indices; by default 0, or empty bytes for text.
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
    dtype = sp_input.dtype
    empty = empty_value(dtype) if default_value is None else to_array(default_value, dtype).item()
    dense = np.full(tuple(sp_input.dense_shape), empty, dtype)
    dense[tuple(sp_input.indices.T)] = sp_input.values
    return dense


def empty_value(dtype: dtypes.DType) -> Any:
    """Return the default value of a dtype: 0, or empty bytes for text."""
    return b"" if dtype == dtypes.string else 0
