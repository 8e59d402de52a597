"""`IndexedSlices`: some rows of a tensor, with their indices."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax_tree, jnp
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.specs import CompositeSpec, Specified, TensorSpec, TypeSpec
from evenfeed.core.structure import Composite
from evenfeed.tensors.arrays.picking import scatter_nd
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced


@final
class IndexedSlices(Composite, Specified):
    """Some rows of a tensor, with their indices: the argument of a variable's `scatter_add` and its siblings.

    Functions read it as the dense tensor, in which rows with the same index are added up.

    Args:
        values: The rows.
        indices: The index of each row.
        dense_shape: The shape of the whole tensor, if it is needed.

    Examples:
        >>> import evenfeed as tf
        >>> rows = tf.IndexedSlices(values=[10.0, 20.0], indices=[0, 2], dense_shape=[3])
        >>> tf.convert_to_tensor(rows).tolist()
        [10.0, 0.0, 20.0]
        >>> tf.Variable([1.0, 2.0, 3.0]).scatter_add(rows).numpy().tolist()
        [11.0, 2.0, 23.0]
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    def __init__(self, values: object, indices: object, dense_shape: object = None) -> None:
        _register()
        self._values: Any = convert_to_tensor(values)
        self._indices: Any = convert_to_tensor(indices)
        self._dense_shape: Any = None if dense_shape is None else convert_to_tensor(dense_shape)

    @property
    def values(self) -> Any:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Any:
        """The index of each row."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """The shape of the whole tensor; None if it was not given."""
        return self._dense_shape

    @property
    def dtype(self) -> DType:
        """The dtype of the rows."""
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole tensor, as far as it is known."""
        if self._dense_shape is None or is_traced(self._dense_shape):
            return TensorShape(None)
        return TensorShape(np.asarray(self._dense_shape).tolist())

    def mapped(self, function: Callable[[Any], Any]) -> "IndexedSlices":
        """Return slices whose tensors are what `function` returns for each tensor."""
        return _rebuilt(None, [part if part is None else function(part) for part in self._parts()])

    def __jax_array__(self) -> Any:
        if self._dense_shape is None:
            raise ValueError(
                described(
                    "IndexedSlices without a dense_shape cannot become a tensor.",
                    fix="pass the shape of the whole tensor: IndexedSlices(values, indices, dense_shape).",
                )
            )
        return scatter_nd(jnp.expand_dims(self._indices, -1), self._values, self._dense_shape)

    def __neg__(self) -> "IndexedSlices":
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape}"
        return f"IndexedSlices(indices={self._indices}, values={self._values}{shape})"

    def _parts(self) -> tuple[Any, ...]:
        return self._values, self._indices, self._dense_shape

    def _components(self) -> tuple[Any, ...]:
        return tuple(part for part in self._parts() if part is not None)

    def _with_components(self, components: Sequence[Any]) -> "IndexedSlices":
        return _rebuilt(None, components)

    @property
    def _type_spec(self) -> "IndexedSlicesSpec":
        shape = None if self._dense_shape is None else self._dense_shape.dtype
        rows = self.shape if self.shape.rank is not None else [None, *self._values.shape[1:]]
        return IndexedSlicesSpec(rows, self.dtype, self._indices.dtype, shape, self._indices.shape)

    def _flattened(self) -> tuple[tuple[Any, ...], None]:
        return self._parts(), None


@cache
def _register() -> None:
    """Let JAX see the tensors in it, so that compiled functions can take and return one."""
    jax_tree.register_pytree_node(IndexedSlices, IndexedSlices._flattened, _rebuilt)  # pyright: ignore[reportPrivateUsage]


def _rebuilt(_: None, parts: Sequence[Any]) -> IndexedSlices:
    """Return slices of these parts unchanged: JAX also passes placeholders."""
    made = object.__new__(IndexedSlices)
    values, indices, *shape = parts
    made._values, made._indices = values, indices  # pyright: ignore[reportPrivateUsage]
    made._dense_shape = shape[0] if shape else None  # pyright: ignore[reportPrivateUsage]
    return made


@final
class IndexedSlicesSpec(CompositeSpec):
    """The spec of IndexedSlices.

    Args:
        shape: The shape of the whole tensor; None if unknown.
        dtype: The dtype of the rows.
        indices_dtype: The dtype of the indices.
        dense_shape_dtype: The dtype of `dense_shape`; None if there is none.
        indices_shape: The shape of the indices, with the number of rows.

    Examples:
        >>> import evenfeed as tf
        >>> tf.IndexedSlicesSpec([None, 3], tf.float32, tf.int32)
        IndexedSlicesSpec(TensorShape([None, 3]), tf.float32, tf.int32, None, TensorShape([None]))
    """

    __slots__ = ("_shape_dtype", "_specs")

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: Any = dtypes.float32,
        indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None,
        indices_shape: ShapeLike = None,
    ) -> None:
        places = TensorShape([None] if indices_shape is None else indices_shape)
        self._specs = TensorSpec(shape, dtype), TensorSpec(places, indices_dtype)
        self._shape_dtype = (
            None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        )

    @property
    def value_type(self) -> type:
        return IndexedSlices

    @property
    def _parts(self) -> tuple[TypeSpec, ...]:
        return self._specs

    @property
    def _frame(self) -> object:
        return self._shape_dtype

    def _with_parts(self, parts: Sequence[TypeSpec]) -> "IndexedSlicesSpec":
        rows, places = (part for part in parts if isinstance(part, TensorSpec))
        return IndexedSlicesSpec(
            rows.shape, rows.dtype, places.dtype, self._shape_dtype, places.shape
        )

    def __hash__(self) -> int:
        return hash((IndexedSlicesSpec, self._specs, self._shape_dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        rows, places = self._specs
        return IndexedSlicesSpec, (
            rows.shape,
            rows.dtype,
            places.dtype,
            self._shape_dtype,
            places.shape,
        )

    def __repr__(self) -> str:
        rows, places = self._specs
        shape = None if self._shape_dtype is None else f"tf.{dtypes.name_of(self._shape_dtype)}"
        names = f"tf.{dtypes.name_of(rows.dtype)}, tf.{dtypes.name_of(places.dtype)}, {shape}"
        return f"IndexedSlicesSpec({rows.shape!r}, {names}, {places.shape!r})"
