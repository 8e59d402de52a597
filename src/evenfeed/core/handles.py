"""Handles: placeholders for text, images and datasets while a user function is traced.

JAX cannot hold text or datasets, and does not need values that only kernels use, such as images. When an evenfeed
function for text or images is called with a handle, it records a kernel and returns placeholders for the results. The
kernels run on the elements before the compiled user function does.
"""

from typing import TYPE_CHECKING, Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor, to_array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.gradients.followed_values import check_not_followed, followed
from evenfeed.core.lazy import LazyModule
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import ShapeLike
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.tensor_types import StandIn
from evenfeed.core.traced.kernel_stages import Computed, RowKernel, Stage, results_of

if TYPE_CHECKING:
    from evenfeed.core.ragged import traced_ragged
    from evenfeed.core.text import traced_texts
    from evenfeed.core.traced import traced_rows
else:
    traced_ragged = LazyModule("evenfeed.core.ragged.traced_ragged")
    traced_rows = LazyModule("evenfeed.core.traced.traced_rows")
    traced_texts = LazyModule("evenfeed.core.text.traced_texts")


def _operator(name: str) -> tuple[Any, Any]:
    """Return both forms of an operator on numbers."""

    def method(part: "Handle", *others: object) -> Any:
        return part.operated(name, part, *others)

    def reflected(part: "Handle", other: object) -> Any:
        return part.operated(name, other, part)

    return method, reflected


class Handle(StandIn):
    """A placeholder for a part that has no value in a trace: text, an image, a dataset.

    A function may pass it on, or call a kernel with it. Reading its value raises: an answer about the handle must not
    pass for an answer about the text. If the part could be an array, the trace restarts with an array instead.
    Comparing texts records a kernel.
    """

    __slots__ = ("_spec", "_stage", "index")

    # NumPy arrays then leave comparison and arithmetic to this class.
    __array_priority__ = 1.0

    def __init__(
        self, index: int, stage: Stage | None = None, spec: TypeSpec | None = None
    ) -> None:
        self.index = index
        self._stage = stage
        self._spec = spec

    @property
    def stands_for_tensor(self) -> bool:
        """True if the part is a tensor."""
        return isinstance(self._spec, TensorSpec)

    @property
    def is_text(self) -> bool:
        """True if the part is text."""
        return isinstance(self._spec, TensorSpec) and self._spec.dtype == dtypes.string

    def compared(self, other: object, *, equal: bool) -> Any:
        """Return a placeholder for the bools of an elementwise `==` or `!=`.

        Raises:
            InvalidArgumentError: The shapes do not broadcast.
        """
        return self._found(traced_texts.compared(self, other, equal=equal))

    def _found(self, found: Any) -> Any:
        return self._refuse() if found is None else found

    @property
    def tensor_spec(self) -> TensorSpec:
        """The spec of a part that is a tensor."""
        assert isinstance(self._spec, TensorSpec)
        return self._spec

    def _compared(self, other: object, *, equal: bool) -> Any:
        if other is None:
            return not equal
        try:
            return self.compared(other, equal=equal) if self.is_text else self._refuse()
        except InvalidArgumentError:
            return not equal  # one bool for all, as in TensorFlow

    def __eq__(self, other: object) -> Any:
        return self._compared(other, equal=True)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, equal=False)

    def __getitem__(self, key: Any) -> Any:
        self.want_array()
        return self._found(traced_texts.indexed(self, key) if self.stands_for_tensor else None)

    def __add__(self, other: object) -> Any:
        if not self.is_text:
            return self.operated("add", self, other)
        return self._found(traced_texts.added(self, other))

    def __radd__(self, other: object) -> Any:
        if not self.is_text:
            return self.operated("add", other, self)
        return self._found(traced_texts.added(other, self))

    def operated(self, name: str, *operands: object) -> Any:
        """Return a placeholder for the result of an operator on numbers whose shape varies."""
        return self._found(traced_rows.operated(name, self, *operands))

    def set_shape(self, shape: ShapeLike) -> None:
        """Add what is known about the shape.

        Raises:
            ValueError: The shapes are not compatible.
        """
        if not self.stands_for_tensor:
            self._refuse()
        known = self.tensor_spec.shape
        wanted = known.merge_with(shape)
        if wanted.rank is None or (known.rank is not None and list(wanted) == list(known)):
            return
        found = traced_rows.ensured(self, wanted)
        if self._stage is None or not isinstance(found, Handle):
            self._refuse()
        else:
            self.index, self._spec = found.index, found._spec
            self._stage.rename(self, found)

    def _refuse(self, *_: object) -> Any:
        self.want_array()
        raise TypeError("This part of the element has no value while the function is traced.")

    def want_array(self) -> None:
        """Restart the trace with an array, if the part could be one."""
        if self._stage is not None and self._stage.computable(self.index):
            raise Computed(self.index)

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "shape") and (found := self._fact(name)) is not None:
            return found
        # Python and libraries look up private names on any object; that does not mean they need an array.
        if not name.startswith("_") or name in ("__array__", "__jax_array__"):
            self.want_array()
        raise AttributeError(f"A part of the element has no {name!r} while the function is traced.")

    def _fact(self, name: str) -> Any:
        """Return the dtype or the shape of the part; None if it is unknown or varies between elements."""
        spec = self._spec
        if name == "dtype" and isinstance(spec, RaggedTensorSpec):
            return spec.dtype
        if not isinstance(spec, TensorSpec):
            return None
        if name == "dtype":
            return spec.dtype
        return tuple(spec.shape) if spec.shape.is_fully_defined() else None

    __lt__, __le__, __gt__, __ge__ = (_operator(name)[0] for name in ("lt", "le", "gt", "ge"))
    __neg__, __abs__ = _operator("neg")[0], _operator("abs")[0]
    __sub__, __rsub__ = _operator("sub")
    __mul__, __rmul__ = _operator("mul")
    __truediv__, __rtruediv__ = _operator("truediv")
    __hash__ = _refuse
    __bool__ = __str__ = __repr__ = __format__ = __len__ = __iter__ = _refuse
    __contains__ = __bytes__ = __int__ = __float__ = __index__ = _refuse
    __pos__ = __invert__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse


@final
class RaggedHandle(Handle):
    """A placeholder for a ragged tensor, which only kernels know. It is one for `isinstance`, too.

    `to_tensor` and `row_lengths` are kernels. Everything else needs its value, so the function then runs per element.
    """

    __slots__ = ()

    def to_tensor(
        self, default_value: Any = None, name: str | None = None, shape: ShapeLike = None
    ) -> Any:
        """Return a placeholder for the dense tensor."""
        del name
        return self._found(traced_ragged.to_tensor(self, default_value, shape))

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """Return a placeholder for the length of each row."""
        del name
        return self._found(traced_ragged.row_lengths(self) if axis == 1 else None)

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return RaggedTensor


@final
class SparseHandle(Handle):
    """A placeholder for a sparse tensor, which may be passed on. It is one for `isinstance`, too.

    Everything else needs its value, so the function then runs per element.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._refuse()  # no AttributeError: `hasattr` would be False

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return SparseTensor


def handle_of(index: int, stage: Stage | None, spec: TypeSpec) -> Handle:
    """Return the placeholder for a part."""
    if isinstance(spec, SparseTensorSpec):
        return SparseHandle(index, stage, spec)
    kind = RaggedHandle if isinstance(spec, RaggedTensorSpec) else Handle
    return kind(index, stage, spec)


def applied(kernel: RowKernel, *values: Any) -> Any:
    """Run a kernel on values, or return a handle for its result if a value is part of a traced element."""
    found = results_of(kernel, *values)
    if found is not None:
        return found[0]
    if any(isinstance(value, Handle) for value in values):
        raise TypeError(
            "A part of the element is combined with a value that is computed from others."
        )
    arrays = [followed(value) for value in values]
    if any(array is not None for array in arrays):
        parts = [v if a is None else a for a, v in zip(arrays, values, strict=True)]
        return _differentiable(kernel, *(p if is_tensor(p) else to_array(p) for p in parts))
    return computed_tensor(kernel.one(*map(to_array, values)))


def _differentiable(kernel: RowKernel, *parts: Any) -> Any:
    """Run a kernel on parts of which a tape follows some."""
    found = kernel.spec(*(TensorSpec(part.shape, part.dtype) for part in parts))
    if found.dtype.kind not in "fV":  # V is that of bfloat16
        return computed_tensor(kernel.one(*map(to_array, parts)))
    image, *rest = parts
    if not kernel.moves_values:
        return kernel.differentiable(image, *rest)
    check_not_followed(*rest)
    numbers: Array = np.arange(1, int(image.size) + 1).reshape(tuple(image.shape))
    places = kernel.one(numbers, *map(to_array, rest))
    moved = image.reshape(-1)[np.maximum(places, 1) - 1]
    return moved if places.all() else moved.at[places == 0].set(0)
