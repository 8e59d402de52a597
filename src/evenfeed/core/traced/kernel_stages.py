"""Kernels, and the stage on which a user function is traced: which parts and results of kernels it may use."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core.block import Block, Column, length_of
from evenfeed.core.conversion import Array
from evenfeed.core.gradients.followed_values import no_gradient
from evenfeed.core.specs import TensorSpec

# Longer lists of images are not stacked: they leave the cache between two kernels anyway.
_MOST_BYTES: Final = 1 << 22
# An image of this size is copied in the time that Python code takes to make a view of it.
_SMALL: Final = 1 << 14


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

    # Whether `all_at_once` computes the results for images of one shape.
    takes_batches: ClassVar[bool] = False

    # Whether it waits for a disk or the network: threads then share even little work.
    waits: ClassVar[bool] = False

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

    def all_at_once(self, images: Array, *columns: Column) -> Column:  # noqa: ARG002 - a contract
        """Return the results for all elements as one array or as views, if the kernel takes batches.

        By default `one` takes a batch of images, too. Its result has that of each image.

        Args:
            images: The first arguments, which are images of one shape: an array of four axes.
            columns: The other arguments.
        """
        return self.one(images)

    @property
    def joins(self) -> bool:
        """Whether images of one shape are copied into one array for `all_at_once`, if they are large."""
        return not self.moves_values

    def of_list(self, images: list[Any], *columns: Column) -> Column:
        """Return the results for first arguments of any shape, which are not joined."""
        rows = Block((images, *columns), len(images)).cut_up()
        return [self.one(*rows.row(index)) for index in range(len(images))]

    @final
    def run(self, *columns: Column) -> list[Column]:
        """Return the results: as a list if they are views or computed one by one, because most are never stacked."""
        images, *others = columns
        batch = _batch(images, join=self.joins) if self.takes_batches else None
        if batch is not None:
            found = self.all_at_once(batch, *others)
            if isinstance(found, np.ndarray) and _owner(found) is _owner(images):
                return [list(found)]
            return [found]
        if isinstance(images, list):
            return [self.of_list(images, *others)]
        rows = Block(columns, length_of(images)).cut_up()
        return [[self.one(*rows.row(index)) for index in range(rows.length)]]


def _batch(images: Column, *, join: bool) -> Array | None:
    """Return images of one shape as one array; None if they are none, or if it is faster to read them one by one."""
    if type(images) is np.ndarray:
        return images if images.ndim == 4 and images.size else None
    if not isinstance(images, list) or len(images) < 2:
        return None
    first: Any = images[0]
    if type(first) is not np.ndarray or first.ndim != 3 or first.nbytes * len(images) > _MOST_BYTES:
        return None
    if not (join or is_small(first)):
        return None
    kind = first.shape, first.dtype
    alike = all(type(one) is np.ndarray and (one.shape, one.dtype) == kind for one in images)
    if not alike or not first.size:
        return None
    whole: Array = np.array(images)
    return whole


def is_small(images: Array) -> bool:
    """Return True if images are faster copied than looked at one by one, as those of MNIST and CIFAR are."""
    return images.nbytes <= _SMALL


def _owner(array: Any) -> Any:
    """Return what holds the memory of an array."""
    base: Any = array
    while base is not None:
        array, base = base, base.base if isinstance(base, np.ndarray) else None
    return array


@final
@dataclass(frozen=True)
class KernelCall:
    """A kernel and the indices of its arguments, among the parts of the element and all earlier results."""

    kernel: Kernel
    parts: tuple[int, ...]


@final
class NewKernel(BaseException):
    """The trace called a kernel that is not prepared yet, and must restart. Users never see it.

    Attributes:
        call: The kernel and its arguments.
        value: What JAX computes for a kernel, if the call is only to compute that first.
    """

    def __init__(self, call: KernelCall, value: Any = None) -> None:
        super().__init__()
        self.call = call
        self.value = value


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
        computing: Returns the call that computes a value before the next kernel, given the number of calls so far; None
            if JAX does not compute the value.
        fixed: Returns True if a part has the same shape in all elements.
    """

    def __init__(
        self,
        calls: Sequence[KernelCall],
        computable: Callable[[int], bool],
        computing: Callable[[int, object], KernelCall | None] = lambda _, __: None,
        fixed: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self._calls = calls
        self.computable = computable
        self._computing = computing
        self._fixed = fixed
        self._results: Sequence[list[Any]] = ()
        self._places: dict[int, int] = {}
        self._computed: list[
            Any
        ] = []  # values that have places, kept so that their ids stay unique
        self._called = 0

    def prepare(self, own: Sequence[Any], results: Sequence[list[Any]]) -> None:
        """Set the placeholders for the parts of the element, and for the results of each call."""
        self._results = results
        parts = [*own, *(part for made in results for part in made)]
        pairs = enumerate(parts)
        self._places = {id(part): place for place, part in pairs if part is not None}

    def rename(self, part: object, result: object) -> None:
        """Let a placeholder stand for a result from now on."""
        self._places[id(part)] = self._places[id(result)]

    def place(self, value: object) -> int | None:
        """Return the index of the part that `value` stands for; None if it stands for none."""
        return self._places.get(id(value))

    def has_fixed_shape(self, values: Sequence[object]) -> bool:
        """Return True if some of these values are parts, and all of those have the same shape in all elements."""
        places = [place for place in map(self.place, values) if place is not None]
        return bool(places) and all(map(self._fixed, places))

    def computed_place(self, value: object) -> int | None:
        """Return the index of the part that holds what JAX computes as an argument of a kernel, or None.

        A first program computes it, so that kernels may come after arithmetic.
        """
        place = self.place(value)
        call = self._computing(self._called, value) if place is None else None
        if call is None:
            return place
        (part,) = self.results(call, value)
        self._computed.append(value)
        place = self._places[id(value)] = self._places[id(part)]
        return place

    def results(self, call: KernelCall, value: object = None) -> list[Any]:
        """Return the placeholders for the results of a call."""
        number, self._called = self._called, self._called + 1
        if number == len(self._calls):
            raise NewKernel(call, value)
        if self._calls[number] != call:
            raise TypeError(
                "The function must call the same operations each time it is traced, but it did not."
            )
        return self._results[number]


# The name of a jitted function in a trace. It returns its first argument, which are indices. The others are the least
# index that is valid, and the one after the largest.
INDEX_CHECK: Final = "index_check"

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
    """Return True if `value` is a part of an element, or computed from one, in a function that is being traced."""
    stage = STAGE.get()
    return stage is not None and stage.computed_place(value) is not None


def have_fixed_shape(*values: object) -> bool:
    """Return True if values are parts of a traced element, each with the same shape in all elements."""
    stage = STAGE.get()
    return stage is not None and stage.has_fixed_shape(values)


def results_of(kernel: Kernel, *values: Any) -> list[Any] | None:
    """Return placeholders for the results of a kernel; None if a value does not follow from a traced element."""
    stage = STAGE.get()
    if stage is None:
        return None
    places = [stage.computed_place(value) for value in values]
    known = tuple(place for place in places if place is not None)
    return stage.results(KernelCall(kernel, known)) if len(known) == len(places) else None
