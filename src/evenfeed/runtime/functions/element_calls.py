"""Calls a user function with one element after another, at little cost over the function itself."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from sys import getrefcount
from typing import Any, Final, TypeAlias, final

from numpy import ndarray

from evenfeed.core.block import Block, Column, as_array, of_parts, of_rows
from evenfeed.core.dtypes import string
from evenfeed.core.promotion import PromotingTensor
from evenfeed.core.randomness.seeds import seeds_of_calls
from evenfeed.core.side_effects import Effects
from evenfeed.core.tensor_types import HostTensor, HostText
from evenfeed.runtime.functions.calls import Calling, as_argument, on_the_host
from evenfeed.runtime.functions.probing import spec_of_first
from evenfeed.runtime.functions.ready_parts import SMALL, UNREADY, text_taken
from evenfeed.runtime.functions.ready_results import Opener
from evenfeed.runtime.functions.results import Results

# Calls a function with elements, in the form that `ElementCalls.reader` finds them.
Fill: TypeAlias = Callable[[Iterable[Any]], None]
# Passes the elements of a Block on, each when it is needed; None if nothing does.
Passing: TypeAlias = Callable[[Iterable[Any]], Iterable[Any]] | None
Around: TypeAlias = Callable[[Callable[[Any], list[Any]]], Callable[[Any], list[Any]]]

# The same as `type`, for a type checker that knows nothing of its argument.
result_type: Final[Any] = type
# Without the Python code of tensors.
_row_of: Final[Any] = ndarray.__getitem__


def _of_parts(join: Callable[[Sequence[Any]], Column], parts: Sequence[Any]) -> Block:
    return Block((join(parts),), len(parts))


def _references_to_new(make: Callable[[], Any]) -> int:
    made = make()
    return getrefcount(made)


# The reference count of a value that only a local variable refers to. Measured: Python versions count differently.
_OWN_REFERENCES: Final = _references_to_new(object)


def _filling(call: Callable[[Any], Any], done: list[Any]) -> Fill:
    """Return a function that puts what a call returns for each element in a list. An error leaves what was done before."""

    def fill(elements: Iterable[Any]) -> None:
        for element in elements:
            done.append(call(element))  # noqa: PERF401 - a comprehension would lose it

    return fill


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
        part_of = self._part_taker()
        seeds, plain, ready = seeds_of_calls(), self._plain, self._results.ready.parts
        if part_of is not None:

            def call_for_part(element: Any) -> list[Any]:
                seeds.place = 0
                return [part_of([plain(element)])]

            return call_for_part

        def call(element: Any) -> list[Any]:
            seeds.place = 0
            # Nothing else may refer to the result, or a copy would be made of it.
            held = [plain(element)]
            found = ready(held)
            return self._fitted(*self._calling.taken_apart(held)) if found is None else found

        return call

    def filler(
        self, done: list[Any], effects: Effects, around: Around | None = None
    ) -> tuple[Fill, Callable[[Any], Block]]:
        """Return a function that calls the user function with elements, and one that makes a Block of the results.

        Args:
            done: Where it puts each result, as the other function takes it. If an element fails, those before it are there.
            effects: Where to record side effects.
            around: Makes of a function like that of `caller` another, which is called instead.
        """
        part_of = self._part_taker()
        if part_of is None or around is not None:
            if around is None and self._results.ready.opener is not None:
                return self._filling_rows(
                    self._results.ready.opener, done
                ), self._results.ready.joined
            call = self.caller(effects)
            return _filling(call if around is None else around(call), done), of_rows
        if self._results.ready.array is not None:
            return self._filling_arrays(part_of, done), of_parts
        return self._filling_scalars(part_of, done)

    # These make no list for each element, which the garbage collector would look at again and again, and call nothing but
    # the user function if that returns what is needed.

    def _filling_arrays(self, part_of: Callable[[list[Any]], Any], done: list[Any]) -> Fill:
        seeds, plain, put = seeds_of_calls(), self._plain, done.append
        dtype, rank, shape = self._results.ready.array or (None, 0, None)

        def fill(elements: Iterable[Any]) -> None:
            result = None
            for element in elements:
                seeds.place = 0
                result = plain(element)
                # A new array, which nothing else refers to, is ready; `part_of` knows all other cases.
                if (
                    result_type(result) is ndarray
                    and result.dtype is dtype
                    and (result.ndim == rank if shape is None else result.shape == shape)
                    and result.base is None
                    and getrefcount(result) == _OWN_REFERENCES
                ):
                    put(result)
                    continue
                held = [result]
                result = None  # nothing else may refer to it, or a copy would be made
                put(part_of(held))

        return fill

    def _filling_scalars(
        self, part_of: Callable[[list[Any]], Any], done: list[Any]
    ) -> tuple[Fill, Callable[[Any], Block]]:
        seeds, plain, put, results = seeds_of_calls(), self._plain, done.append, self._results.ready
        scalar: Any = results.scalar
        is_text = scalar is bytes
        python: Any = str if is_text else results.python

        def fill(elements: Iterable[Any]) -> None:
            result = None
            for element in elements:
                seeds.place = 0
                result = plain(element)
                kind = result_type(result)
                if kind is scalar or (
                    kind is python and (result.isascii() if is_text else -SMALL <= result < SMALL)
                ):
                    put(result)
                    continue
                held = [result]
                result = None
                put(part_of(held))

        return fill, of_parts if python is None else partial(_of_parts, results.joins[0])

    def _filling_rows(self, opener: Opener, done: list[Any]) -> Fill:
        seeds, plain, put, results = seeds_of_calls(), self._plain, done.append, self._results.ready
        kept, parts_of = results.kept, results.parts

        def fill(elements: Iterable[Any]) -> None:
            for element in elements:
                seeds.place = 0
                held = [plain(element)]
                parts = opener(held[0])
                if parts is not None and (checks := kept(tuple(map(type, parts)))):
                    small, texts = checks
                    for index in small:
                        if not -SMALL <= parts[index] < SMALL:
                            break
                    else:
                        for index in texts:
                            if not parts[index].isascii():
                                break
                        else:
                            put(parts)
                            continue
                found = parts_of(held)
                if found is None:
                    found = self._fitted(*self._calling.taken_apart(held))
                put(found)

        return fill

    def block(self, block: Block, effects: Effects) -> Block:
        """Return the results for a Block."""
        done: list[Any] = []
        fill, joined = self.filler(done, effects)
        fill(self.elements(block))
        return joined(done)

    def _part_taker(self) -> Callable[[list[Any]], Any] | None:
        """Return a function from a result, in a list, to its only part; None if it may have others."""
        results = self._results.ready
        if self._returns_values or not results.is_one:
            return None
        ready, python, number = results.part, results.python, results.number
        scalar: Any = results.scalar

        def part_of(held: list[Any]) -> Any:
            result = held.pop()
            kind = result_type(result)
            if kind is scalar:
                return result
            if kind is python:
                if -SMALL <= result < SMALL:
                    return scalar(result)
            elif kind is PromotingTensor:
                if result.dtype is number and not result.ndim:
                    return _row_of(result, ())
            elif kind is str and scalar is bytes:
                text = text_taken(result)
                if text is not UNREADY:
                    return text
            held.append(result)
            del result
            part = ready(held)
            return self._fitted(*self._calling.taken_apart(held))[0] if part is UNREADY else part

        return part_of

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
