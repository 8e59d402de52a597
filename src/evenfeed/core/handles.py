"""What stands for parts of an element that JAX cannot hold, or need not, while a user's function is traced.

A function of evenfeed's that works on text or images is called with such a handle there. It leaves a
kernel, which is run on the elements before the function is, and gets what stands for the results.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, final

from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array
from evenfeed.core.specs import TensorSpec


class Kernel(ABC):
    """A function of evenfeed's for whole columns at a time. Equal ones do the same."""

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


_STAGE: Final[ContextVar[Stage | None]] = ContextVar("_STAGE", default=None)


@contextmanager
def on_stage(stage: Stage) -> Generator[None]:
    """Let kernels find the parts of the element that a function is traced with."""
    token = _STAGE.set(stage)
    try:
        yield
    finally:
        _STAGE.reset(token)


def stands_for_part(value: object) -> bool:
    """Tell whether `value` stands for a part of an element, in a function that is traced."""
    stage = _STAGE.get()
    return stage is not None and stage.place(value) is not None


def results_of(kernel: Kernel, *values: Any) -> list[Any] | None:
    """Return what stands for the results of a kernel; None where a value is no part of a traced element."""
    stage = _STAGE.get()
    if stage is None:
        return None
    places = [stage.place(value) for value in values]
    known = tuple(place for place in places if place is not None)
    return stage.results(KernelCall(kernel, known)) if len(known) == len(places) else None


@final
class Handle:
    """Stands for a part that is not there: text, None, an image. One may hand it on, or call a kernel.

    Whatever would look at its value is refused, so that no answer about the handle is taken for one
    about the text; where it could be an array, the trace is begun anew with one.
    """

    __slots__ = ("_stage", "index")

    def __init__(self, index: int, stage: Stage | None = None) -> None:
        self.index = index
        self._stage = stage

    def _refuse(self, *_: object) -> Any:
        self._want_array()
        raise TypeError("This part of the element has no value while the function is traced.")

    def _want_array(self) -> None:
        if self._stage is not None and self._stage.computable(self.index):
            raise Computed(self.index)

    def __getattr__(self, name: str) -> Any:
        # What Python and libraries look for on any object is not asked of an array.
        if not name.startswith("_") or name in ("__array__", "__jax_array__"):
            self._want_array()
        raise AttributeError(f"A part of the element has no {name!r} while the function is traced.")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __hash__ = __str__ = __repr__ = __format__ = __len__ = __iter__ = _refuse
    __contains__ = __getitem__ = __bytes__ = __int__ = __float__ = __index__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse
