"""Calls a user function with one element after another, at little cost over the function itself."""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from numpy import asarray, ndarray

from evenfeed.core.block import Block
from evenfeed.core.dtypes import string
from evenfeed.core.seeds import beginner
from evenfeed.core.side_effects import Effects
from evenfeed.core.tensor_types import HostTensor, HostText
from evenfeed.runtime.functions.calls import Calling, as_argument, on_the_host
from evenfeed.runtime.functions.probing import spec_of_first
from evenfeed.runtime.functions.results import Results

# Without the Python code of tensors.
_row_of: Final[Any] = ndarray.__getitem__


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

    def reader(self, block: Block) -> Callable[[int], list[Any]]:
        """Return a function from the index of an element in a Block to the arguments for it."""
        cut = block.cut_up()
        pairs = zip(cut.columns, self._tensors, strict=True)
        # A view of the whole column: its rows are tensors, too.
        columns = [
            column.view(tensor) if tensor and type(column) is ndarray else column
            for column, tensor in pairs
        ]
        only = columns[0] if len(columns) == 1 else None
        if isinstance(only, HostTensor):
            return lambda index: [_row_of(only, (index, ...))]
        if type(only) is ndarray and only.ndim == 1 and only.dtype == string:
            return lambda index: [HostText(only[index])]
        rows = Block(tuple(columns), cut.length)
        if all(isinstance(column, HostTensor) for column in columns):
            return rows.row
        return lambda index: self.arguments(rows.row(index))

    def arguments(self, parts: Sequence[Any]) -> list[Any]:
        """Return the parts of one element as the function gets them."""
        return [
            part.view(tensor) if tensor and type(part) is ndarray else as_argument(part)
            for part, tensor in zip(parts, self._tensors, strict=True)
        ]

    def caller(self, effects: Effects) -> Callable[[list[Any]], list[Any]]:
        """Return a function from arguments to the parts of the result; a scalar may be a NumPy scalar.

        It is for this thread, as long as it runs the function.
        """
        if self._returns_values or self._results.spec is None:
            return lambda arguments: self.one(arguments, effects)
        begin, plain, ready = beginner(), self._calling.plain, self._results.ready.parts

        def call(arguments: list[Any]) -> list[Any]:
            begin()
            # Nothing else may refer to the result, or a copy would be made of it.
            held = [plain(arguments)]
            found = ready(held)
            return self._fitted(*self._calling.taken_apart(held)) if found is None else found

        return call

    def one(self, arguments: list[Any], effects: Effects) -> list[Any]:
        """Return the parts of the result, all as arrays; with `returns_values`, the result itself in a list."""
        beginner()()
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
        return [asarray(part) for part in found]

    def _fitted(self, structure: Any, leaves: list[Any]) -> list[Any]:
        return self._results.fitted(structure, [on_the_host(leaf) for leaf in leaves])
