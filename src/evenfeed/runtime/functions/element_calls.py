"""Calls a user function with one element after another, at little cost over the function itself."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from sys import getrefcount
from typing import Any, Final, final

from numpy import ndarray

from evenfeed.core.block import Block, as_array, of_parts, of_rows
from evenfeed.core.dtypes import string
from evenfeed.core.promotion import PromotingTensor
from evenfeed.core.randomness.seeds import seeds_of_calls
from evenfeed.core.side_effects import Effects
from evenfeed.core.tensor_types import HostTensor, HostText
from evenfeed.runtime.functions.calls import Calling, as_argument, on_the_host
from evenfeed.runtime.functions.probing import spec_of_first
from evenfeed.runtime.functions.ready_parts import UNREADY
from evenfeed.runtime.functions.results import Results

# Without the Python code of tensors.
_row_of: Final[Any] = ndarray.__getitem__


def _references_to_new(make: Callable[[], Any]) -> int:
    made = make()
    return getrefcount(made)


# The reference count of a value that only a local variable refers to. Measured: Python versions count differently.
_OWN_REFERENCES: Final = _references_to_new(object)


@final
class ElementCalls:
    """A user function that gets single elements.

    Args:
        calling: The function, and how it is called.
        results: What its results must look like.
        tensors: The tensor class of each part that it gets; None for parts that are not numeric.
        returns_values: Whether it returns something other than tensors.
    """

    def __init__(
        self,
        calling: Calling,
        results: Results,
        tensors: Sequence[type[HostTensor] | None],
        *,
        returns_values: bool,
    ) -> None:
        self._calling = calling
        self._results = results
        self._tensors = tensors
        self._returns_values = returns_values

    def reader(self, block: Block) -> Callable[[int], Any]:
        """Return a function from the index of an element in a Block to what `caller` takes: its only part, or all."""
        cut = block.cut_up()
        pairs = zip(cut.columns, self._tensors, strict=True)
        # A view of the whole column: its rows are tensors, too.
        columns = [
            column.view(tensor) if tensor and type(column) is ndarray else column
            for column, tensor in pairs
        ]
        only = columns[0] if self._calling.is_single else None
        if isinstance(only, HostTensor):
            return lambda index: _row_of(only, (index, ...))
        if type(only) is ndarray and only.ndim == 1 and only.dtype == string:
            return lambda index: HostText(only[index])
        rows = Block(tuple(columns), cut.length)
        if self._calling.is_single:
            return lambda index: self.arguments(rows.row(index))[0]
        if all(isinstance(column, HostTensor) for column in columns):
            return rows.row
        return lambda index: self.arguments(rows.row(index))

    def elements(self, block: Block) -> Iterator[Any]:
        """Return all elements of a Block in turn, as `reader` finds them, without Python code for each if possible."""
        cut = block.cut_up()
        only = cut.columns[0] if self._calling.is_single else None
        if type(only) is ndarray and (tensor := self._tensors[0]):
            places = zip(range(cut.length), repeat(...), strict=False)
            return map(_row_of, repeat(only.view(tensor)), places)
        if type(only) is ndarray and only.ndim == 1 and only.dtype == string:
            return map(HostText, only.tolist())
        return map(self.reader(cut), range(cut.length))

    def arguments(self, parts: Sequence[Any]) -> list[Any]:
        """Return the parts of one element as the function gets them."""
        return [
            part.view(tensor) if tensor and type(part) is ndarray else as_argument(part)
            for part, tensor in zip(parts, self._tensors, strict=True)
        ]

    def caller(self, effects: Effects) -> Callable[[Any], list[Any]]:
        """Return a function from an element, as `reader` finds it, to the parts of the result, as `of_rows` takes them.

        It is for this thread, as long as it runs the function.
        """
        is_single = self._calling.is_single
        if self._returns_values or self._results.spec is None:
            return lambda element: self.one([element] if is_single else element, effects)
        part_of = self.part_caller()
        if part_of is not None:
            return lambda element: [part_of(element)]
        seeds, plain, ready = seeds_of_calls(), self._plain, self._results.ready.parts

        def call(element: Any) -> list[Any]:
            seeds.place = 0
            # Nothing else may refer to the result, or a copy would be made of it.
            held = [plain(element)]
            found = ready(held)
            return self._fitted(*self._calling.taken_apart(held)) if found is None else found

        return call

    def joining(
        self, effects: Effects, *, in_lists: bool
    ) -> tuple[Callable[[Any], Any], Callable[[list[Any]], Block]]:
        """Return a function like that of `caller`, and one that makes a Block of what it returns.

        Args:
            effects: Where to record side effects.
            in_lists: Whether the parts of each result must be in a list, because others are.
        """
        part_of = None if in_lists else self.part_caller()
        return (self.caller(effects), of_rows) if part_of is None else (part_of, of_parts)

    def part_caller(self) -> Callable[[Any], Any] | None:
        """Return a function like that of `caller`, but to the only part of a result; None if there may be others.

        It makes no list for each element, which the garbage collector would look at again and again.
        """
        results = self._results.ready
        if self._returns_values or not results.is_one:
            return None
        seeds, plain, ready, scalar = seeds_of_calls(), self._plain, results.part, results.scalar
        dtype, rank, shape = results.array or (None, 0, None)
        number = results.number

        def call(element: Any) -> Any:
            seeds.place = 0
            result = plain(element)
            kind: type[Any] = result.__class__
            if kind is scalar:
                return result
            if kind is PromotingTensor and result.dtype is number and not result.ndim:
                return _row_of(result, ())
            # A new array, which nothing else refers to, is ready too; `ready` knows all other cases.
            if (
                kind is ndarray
                and result.dtype is dtype
                and (result.ndim == rank if shape is None else result.shape == shape)
                and result.base is None
                and getrefcount(result) == _OWN_REFERENCES
            ):
                return result
            held = [result]
            del result  # nothing else may refer to it, or a copy would be made
            part = ready(held)
            return self._fitted(*self._calling.taken_apart(held))[0] if part is UNREADY else part

        return call

    @property
    def _plain(self) -> Callable[[Any], Any]:
        """The user function, for an element as `reader` finds it."""
        return self._calling.function if self._calling.is_single else self._calling.plain

    def one(self, arguments: list[Any], effects: Effects) -> list[Any]:
        """Return the parts of the result, all as arrays; with `returns_values`, the result itself in a list."""
        seeds_of_calls().place = 0
        if self._returns_values:
            return [self._calling.plain(arguments)]
        if self._results.spec is None:
            spec, structure, leaves = spec_of_first(self._calling, arguments, effects)
            self._results.learn(spec)
            return self._results.fitted(structure, leaves)
        held = [self._calling.plain(arguments)]
        found = self._results.ready.parts(held)
        if found is None:
            return self._fitted(*self._calling.taken_apart(held))
        return [as_array(part) for part in found]

    def _fitted(self, structure: Any, leaves: list[Any]) -> list[Any]:
        return self._results.fitted(structure, [on_the_host(leaf) for leaf in leaves])
