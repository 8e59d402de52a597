"""What stands for parts of an element that JAX cannot hold, while a user's function is traced.

A function of evenfeed's that works on text is called with such a handle there. It leaves a kernel, which is
run on whole columns before the function is, and gets what stands for the results.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.block import Column
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec


class Kernel(ABC):
    """A function of evenfeed's on text, for a whole column at a time. Equal ones do the same."""

    @abstractmethod
    def specs(self, shape: TensorShape) -> list[TensorSpec]:
        """Return what comes out for one element of text of this shape."""

    @abstractmethod
    def run(self, column: Column) -> list[Column]:
        """Return the results for all elements of a column."""


@final
@dataclass(frozen=True)
class KernelCall:
    """A kernel, and which part of the element it is called with: of the user's parts and all results before."""

    kernel: Kernel
    part: int


@final
class NewKernel(BaseException):
    """A kernel was called that is not prepared yet: the trace must be begun anew. No user catches it."""

    def __init__(self, call: KernelCall) -> None:
        super().__init__()
        self.call = call


@final
class Stage:
    """The results of kernels that one trace may use, in the order of the calls."""

    def __init__(self, calls: Sequence[KernelCall]) -> None:
        self._calls = calls
        self._results: Sequence[list[Any]] = ()
        self._called = 0

    def prepare(self, results: Sequence[list[Any]]) -> None:
        """Say what stands for the results of each call."""
        self._results = results

    def results(self, call: KernelCall) -> list[Any]:
        """Return what stands for the results of a call."""
        number, self._called = self._called, self._called + 1
        if number == len(self._calls):
            raise NewKernel(call)
        if self._calls[number] != call:
            raise TypeError("The function does something else each time it is traced.")
        return self._results[number]


@final
class Handle:
    """Stands for a part that JAX cannot hold: text, None. A function may only hand it on, or call a kernel.

    Whatever would look at its value is refused, so that no answer about the handle is taken for one
    about the text.
    """

    __slots__ = ("_stage", "index")

    def __init__(self, index: int, stage: Stage | None = None) -> None:
        self.index = index
        self._stage = stage

    def results(self, kernel: Kernel) -> list[Any]:
        """Return what stands for the results of a kernel on this part."""
        return (
            self._refuse()
            if self._stage is None
            else self._stage.results(KernelCall(kernel, self.index))
        )

    def _refuse(self, *_: object) -> Any:
        raise TypeError("This part of the element has no value while the function is traced.")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __hash__ = __str__ = __repr__ = __format__ = __len__ = __iter__ = _refuse
    __add__ = __radd__ = __contains__ = __getitem__ = __bytes__ = _refuse
