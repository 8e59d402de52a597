"""Handles: placeholders for text, images and datasets while a user function is traced.

JAX cannot hold text or datasets, and does not need values that only kernels use, such as images. When an evenfeed
function for text or images is called with a handle, it records a kernel and returns placeholders for the results. The
kernels run on the elements before the compiled user function does.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column, length_of
from evenfeed.core.conversion import Array, is_tensor, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import check_not_followed, followed, no_gradient
from evenfeed.core.lazy import LazyModule
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import ShapeLike
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.tensor_types import StandIn

if TYPE_CHECKING:
    from evenfeed.core.ragged import traced_ragged
    from evenfeed.core.text import traced_texts
else:
    traced_ragged = LazyModule("evenfeed.core.ragged.traced_ragged")
    traced_texts = LazyModule("evenfeed.core.text.traced_texts")


class Kernel(ABC):
    """An evenfeed function on whole columns. Equal kernels compute the same results.

    Attributes:
        stays_on_host: Whether results stay handles while only kernels use them.
        takes_ragged: Whether arguments may be ragged tensors; others are tensors.
    """

    stays_on_host: ClassVar[bool] = False
    takes_ragged: ClassVar[bool] = False

    @abstractmethod
    def specs(self, *given: Any) -> list[Any]:
        """Return the specs of the results for one element, given the specs of the arguments."""

    @abstractmethod
    def run(self, *columns: Column) -> list[Column]:
        """Return the result columns for all elements."""


class RowKernel(Kernel):
    """A kernel that works on one element at a time and has one result.

    The result stays on the host while only kernels use it, whatever its shape.

    """

    stays_on_host: ClassVar[bool] = True

    # Whether the result holds values of the first argument, and zeros: it then has a gradient.
    moves_values: ClassVar[bool] = False

    @abstractmethod
    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return the spec of the result for one element, given the specs of the arguments."""

    @abstractmethod
    def one(self, *parts: Array) -> Array:
        """Return the result for one element."""

    def differentiable(self, *parts: Any) -> Any:  # noqa: ARG002 - a contract
        """Return the result for tensors that a tape follows, computed with operators and methods of the arrays.

        Raises:
            LookupError: The kernel has no gradient.
        """
        raise no_gradient()

    @final
    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        return [self.spec(*given)]

    @final
    def run(self, *columns: Column) -> list[Column]:
        """Return the results as a list, because most are never stacked into one array."""
        rows = Block(columns, length_of(columns[0])).cut_up()
        return [[self.one(*rows.row(index)) for index in range(rows.length)]]


@final
@dataclass(frozen=True)
class KernelCall:
    """A kernel and the indices of its arguments, among the parts of the element and all earlier results."""

    kernel: Kernel
    parts: tuple[int, ...]


@final
class NewKernel(BaseException):
    """The trace called a kernel that is not prepared yet, and must restart. Users never see it."""

    def __init__(self, call: KernelCall) -> None:
        super().__init__()
        self.call = call


@final
class Computed(BaseException):
    """JAX needs a part that is a handle as an array, so the trace must restart with an array. Users never see it."""

    def __init__(self, part: int) -> None:
        super().__init__()
        self.part = part


@final
class Stage:
    """The parts of the element and the kernel results that one trace may use, in the order of the calls.

    Args:
        calls: The kernel calls.
        computable: Returns True if a part that is a handle could be an array.
    """

    def __init__(self, calls: Sequence[KernelCall], computable: Callable[[int], bool]) -> None:
        self._calls = calls
        self.computable = computable
        self._results: Sequence[list[Any]] = ()
        self._places: dict[int, int] = {}
        self._called = 0

    def prepare(self, own: Sequence[Any], results: Sequence[list[Any]]) -> None:
        """Set the placeholders for the parts of the element, and for the results of each call."""
        self._results = results
        parts = [*own, *(part for made in results for part in made)]
        pairs = enumerate(parts)
        self._places = {id(part): place for place, part in pairs if part is not None}

    def place(self, value: object) -> int | None:
        """Return the index of the part that `value` stands for; None if it stands for none."""
        return self._places.get(id(value))

    def results(self, call: KernelCall) -> list[Any]:
        """Return the placeholders for the results of a call."""
        number, self._called = self._called, self._called + 1
        if number == len(self._calls):
            raise NewKernel(call)
        if self._calls[number] != call:
            raise TypeError(
                "The function must call the same operations each time it is traced, but it did not."
            )
        return self._results[number]


# The stage of the function that is being traced.
STAGE: Final[ContextVar[Stage | None]] = ContextVar("STAGE", default=None)


@contextmanager
def on_stage(stage: Stage) -> Generator[None]:
    """Trace a function on this stage, so that kernels find the parts of its element."""
    token = STAGE.set(stage)
    try:
        yield
    finally:
        STAGE.reset(token)


def stands_for_part(value: object) -> bool:
    """Return True if `value` is a placeholder for a part of an element, in a function that is being traced."""
    stage = STAGE.get()
    return stage is not None and stage.place(value) is not None


def results_of(kernel: Kernel, *values: Any) -> list[Any] | None:
    """Return placeholders for the results of a kernel; None if a value is not a part of a traced element."""
    stage = STAGE.get()
    if stage is None:
        return None
    places = [stage.place(value) for value in values]
    known = tuple(place for place in places if place is not None)
    return stage.results(KernelCall(kernel, known)) if len(known) == len(places) else None


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
        return self._found(traced_texts.indexed(self, key)) if self.is_text else self._refuse()

    def __add__(self, other: object) -> Any:
        return self._found(traced_texts.added(self, other)) if self.is_text else self._refuse()

    def __radd__(self, other: object) -> Any:
        return self._found(traced_texts.added(other, self)) if self.is_text else self._refuse()

    def _refuse(self, *_: object) -> Any:
        self._want_array()
        raise TypeError("This part of the element has no value while the function is traced.")

    def _want_array(self) -> None:
        if self._stage is not None and self._stage.computable(self.index):
            raise Computed(self.index)

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "shape") and (found := self._fact(name)) is not None:
            return found
        # Python and libraries look up private names on any object; that does not mean they need an array.
        if not name.startswith("_") or name in ("__array__", "__jax_array__"):
            self._want_array()
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

    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __bool__ = __str__ = __repr__ = __format__ = __len__ = __iter__ = _refuse
    __contains__ = __bytes__ = __int__ = __float__ = __index__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = _refuse
    __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
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


def handle_of(index: int, stage: Stage | None, spec: TypeSpec) -> Handle:
    """Return the placeholder for a part."""
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


def text_of(contents: Array, name: str = "contents") -> bytes:
    """Check that an argument is a scalar string, and return its bytes."""
    if contents.dtype != dtypes.string:
        raise TypeError(
            described(f"{name} must be bytes, but got {contents.dtype.name}.", fix=_READ_IT)
        )
    if contents.ndim:
        raise InvalidArgumentError(
            f"`{name}` must be scalar, but got shape {list(contents.shape)}.",
            fix="decode one image at a time, before calling batch.",
        )
    return cast("bytes", contents.item())


_READ_IT = "pass the result of evenfeed.io.read_file, or bytes."
