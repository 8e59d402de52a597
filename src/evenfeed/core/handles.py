"""What stands for parts of an element that JAX cannot hold, or need not, while a user's function is traced.

A function of evenfeed's that works on text or images is called with such a handle there. It leaves a
kernel, which is run on the elements before the function is, and gets what stands for the results.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column, cut_up
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.tensor_types import StandIn
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import texts_in, unlike_shapes


class Kernel(ABC):
    """A function of evenfeed's for whole columns at a time. Equal ones do the same.

    Attributes:
        stays_on_host: Whether a result is a handle as long as nothing but kernels wants it.
    """

    stays_on_host: ClassVar[bool] = False

    @abstractmethod
    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        """Return what comes out for one element of these parts."""

    @abstractmethod
    def run(self, *columns: Column) -> list[Column]:
        """Return the results for all elements of the columns."""


class RowKernel(Kernel):
    """A function that works on one element at a time, and has one result.

    The result stays on the host as long as only kernels want it, whatever its shape.
    """

    stays_on_host: ClassVar[bool] = True

    @abstractmethod
    def spec(self, *given: TensorSpec) -> TensorSpec:
        """Return what comes out for one element of these parts."""

    @abstractmethod
    def one(self, *parts: Array) -> Array:
        """Return the result for one element."""

    @final
    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        """Return the one spec."""
        return [self.spec(*given)]

    @final
    def run(self, *columns: Column) -> list[Column]:
        """Return the results one by one: most are not needed in one piece."""
        rows = Block(columns, 0 if columns[0] is None else len(columns[0])).cut_up()
        return [[self.one(*rows.row(index)) for index in range(rows.length)]]


@final
@dataclass(frozen=True)
class KernelCall:
    """A kernel, and which parts it is called with: of the user's parts and all results before."""

    kernel: Kernel
    parts: tuple[int, ...]


@final
class NewKernel(BaseException):
    """A kernel was called that is not prepared yet: the trace must be begun anew. No user catches it."""

    def __init__(self, call: KernelCall) -> None:
        super().__init__()
        self.call = call


@final
class Computed(BaseException):
    """JAX is to compute with a part that stood for a result: the trace must be begun anew with an array."""

    def __init__(self, part: int) -> None:
        super().__init__()
        self.part = part


@final
class Stage:
    """The parts and the results of kernels that one trace may use, in the order of the calls.

    Args:
        calls: The kernels.
        computable: Tells of a part that is a handle whether it could be an array.
    """

    def __init__(self, calls: Sequence[KernelCall], computable: Callable[[int], bool]) -> None:
        self._calls = calls
        self.computable = computable
        self._results: Sequence[list[Any]] = ()
        self._places: dict[int, int] = {}
        self._called = 0

    def prepare(self, own: Sequence[Any], results: Sequence[list[Any]]) -> None:
        """Say what stands for the user's parts, and for the results of each call."""
        self._results = results
        parts = [*own, *(part for made in results for part in made)]
        pairs = enumerate(parts)
        self._places = {id(part): place for place, part in pairs if part is not None}

    def place(self, value: object) -> int | None:
        """Return which part a value is; None where it is something else, or computed."""
        return self._places.get(id(value))

    def results(self, call: KernelCall) -> list[Any]:
        """Return what stands for the results of a call."""
        number, self._called = self._called, self._called + 1
        if number == len(self._calls):
            raise NewKernel(call)
        if self._calls[number] != call:
            raise TypeError("The function does something else each time it is traced.")
        return self._results[number]


# That of the function that is being traced.
STAGE: Final[ContextVar[Stage | None]] = ContextVar("STAGE", default=None)


@contextmanager
def on_stage(stage: Stage) -> Generator[None]:
    """Let kernels find the parts of the element that a function is traced with."""
    token = STAGE.set(stage)
    try:
        yield
    finally:
        STAGE.reset(token)


def stands_for_part(value: object) -> bool:
    """Tell whether `value` stands for a part of an element, in a function that is traced."""
    stage = STAGE.get()
    return stage is not None and stage.place(value) is not None


def results_of(kernel: Kernel, *values: Any) -> list[Any] | None:
    """Return what stands for the results of a kernel; None where a value is no part of a traced element."""
    stage = STAGE.get()
    if stage is None:
        return None
    places = [stage.place(value) for value in values]
    known = tuple(place for place in places if place is not None)
    return stage.results(KernelCall(kernel, known)) if len(known) == len(places) else None


@final
@dataclass(frozen=True)
class CompareTexts(Kernel):
    """Says whether texts are equal: two parts of an element, or one and a constant.

    Attributes:
        equal: False says whether they are unequal.
        shape: The shape of the constant.
        texts: The constant, as bytes; None where there is none.
    """

    equal: bool
    shape: tuple[int, ...] = ()
    texts: tuple[bytes, ...] | None = None

    stays_on_host: ClassVar[bool] = True

    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        """Return the bools for one element."""
        shapes = [spec.shape for spec in given]
        if self.texts is not None:
            shapes.append(TensorShape(self.shape))
        return [TensorSpec(_broadcast(*shapes), dtypes.bool)]

    def run(self, *columns: Column) -> list[Column]:
        """Compare all texts at once, where the elements are alike."""
        found = self._same(columns)
        return [found if self.equal else _inverted(found)]

    def _same(self, columns: Sequence[Column]) -> Array | list[Any]:
        first = columns[0]
        if (
            isinstance(first, Texts)
            and first.ndim == 1
            and self.texts is not None
            and not self.shape
        ):
            return first.equal_to(self.texts[0])
        given = [cut_up(column) for column in columns]
        if any(isinstance(column, list) for column in given):
            rows = zip(*(column for column in given if column is not None), strict=True)
            return [np.asarray(np.equal(*self._operands(row)), np.bool_) for row in rows]
        arrays = [column for column in given if isinstance(column, np.ndarray)]
        rank = max(len(self.shape), *(column.ndim - 1 for column in arrays))
        return np.asarray(np.equal(*self._operands([_of_rank(c, rank) for c in arrays])), np.bool_)

    def _operands(self, given: Sequence[Array]) -> Sequence[Array]:
        if self.texts is None:
            return given
        constant = np.empty(len(self.texts), dtypes.string)
        constant[:] = self.texts
        return [*given, constant.reshape(self.shape)]


def _inverted(found: Array | list[Any]) -> Array | list[Any]:
    return [~row for row in found] if isinstance(found, list) else ~found


def _of_rank(column: Array, rank: int) -> Array:
    """Return a column whose elements have more axes, so that they broadcast to others."""
    return column.reshape(len(column), *(1,) * (rank + 1 - column.ndim), *column.shape[1:])


def _broadcast(one: TensorShape, two: TensorShape) -> TensorShape | None:
    """Return the shape that two become together; None where they do not fit."""
    if one.rank is None or two.rank is None:
        return TensorShape(None)
    dims: list[int | None] = []
    for a, b in zip_longest(reversed(list(one)), reversed(list(two)), fillvalue=1):
        if 1 not in (a, b) and None not in (a, b) and a != b:
            return None
        dims.append((b if a == 1 else a) if a is not None else (None if b == 1 else b))
    return TensorShape(dims[::-1])


@final
class Handle(StandIn):
    """Stands for a part that is not there: text, an image, a dataset. One may hand it on, or call a kernel.

    Whatever would look at its value is refused, so that no answer about the handle is taken for one
    about the text; where it could be an array, the trace is begun anew with one. Texts that are compared
    leave a kernel.
    """

    __slots__ = ("_spec", "_stage", "index")

    # NumPy's arrays leave it to this class to compare, and to compute.
    __array_priority__ = 1.0

    def __init__(
        self, index: int, stage: Stage | None = None, spec: TypeSpec | None = None
    ) -> None:
        self.index = index
        self._stage = stage
        self._spec = spec

    @property
    def stands_for_tensor(self) -> bool:
        """Whether the part is a tensor."""
        return isinstance(self._spec, TensorSpec)

    @property
    def is_text(self) -> bool:
        """Whether the part is text."""
        return isinstance(self._spec, TensorSpec) and self._spec.dtype == dtypes.string

    def compared(self, other: object, *, equal: bool) -> Any:
        """Return what stands for the bools that say where texts are equal, or unequal.

        Raises:
            InvalidArgumentError: The shapes do not broadcast.
        """
        if isinstance(other, Handle) and other.is_text:
            kernel, values = CompareTexts(equal), (self, other)
            shape = other._tensor_spec.shape
        else:
            texts = texts_in(other)
            if texts is None:
                return self._refuse()
            kernel = CompareTexts(equal, texts.shape, tuple(texts.ravel().tolist()))
            values, shape = (self,), TensorShape(texts.shape)
        if _broadcast(self._tensor_spec.shape, shape) is None:
            raise unlike_shapes(self._tensor_spec.shape, shape)
        found = results_of(kernel, *values)
        return self._refuse() if found is None else found[0]

    @property
    def _tensor_spec(self) -> TensorSpec:
        assert isinstance(self._spec, TensorSpec)
        return self._spec

    def _compared(self, other: object, *, equal: bool) -> Any:
        if other is None:
            return not equal
        try:
            return self.compared(other, equal=equal) if self.is_text else self._refuse()
        except InvalidArgumentError:
            return not equal  # as a whole, as in TensorFlow

    def __eq__(self, other: object) -> Any:
        return self._compared(other, equal=True)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, equal=False)

    def _refuse(self, *_: object) -> Any:
        self._want_array()
        raise TypeError("This part of the element has no value while the function is traced.")

    def _want_array(self) -> None:
        if self._stage is not None and self._stage.computable(self.index):
            raise Computed(self.index)

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "shape") and (found := self._fact(name)) is not None:
            return found
        # What Python and libraries look for on any object is not asked of an array.
        if not name.startswith("_") or name in ("__array__", "__jax_array__"):
            self._want_array()
        raise AttributeError(f"A part of the element has no {name!r} while the function is traced.")

    def _fact(self, name: str) -> Any:
        """Return what is known without a value: the dtype, and the shape if it is the same for all elements."""
        spec = self._spec
        if not isinstance(spec, TensorSpec):
            return None
        if name == "dtype":
            return spec.dtype
        return tuple(spec.shape) if spec.shape.is_fully_defined() else None

    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = _refuse
    __bool__ = __str__ = __repr__ = __format__ = __len__ = __iter__ = _refuse
    __contains__ = __getitem__ = __bytes__ = __int__ = __float__ = __index__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
