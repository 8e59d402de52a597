"""Calls a function with the first elements before a pass, and keeps the results for that pass."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, final

from evenfeed.core.block import Positions
from evenfeed.plan.ordering import made_by_function
from evenfeed.runtime.run import FirstElements

# The parts of a result, or the exception that the function raised.
Result: TypeAlias = list[Any] | Exception


@final
class FirstCalls:
    """Calls a function with the first elements, and keeps the results for the pass that follows.

    So a function with side effects is called once per element.
    """

    def __init__(self, results: dict[int, Result] | None = None) -> None:
        self._results: dict[int, Result] = results or {}

    def __bool__(self) -> bool:
        return bool(self._results)

    def make(
        self, call: Callable[[list[Any], int], list[Any]], elements: FirstElements | None
    ) -> Iterator[Result]:
        """Yield the result of one element after another."""
        self._results = {}
        for number, parts in elements() if elements else ():
            try:
                with made_by_function():
                    found: Result = call(parts, number)
            except Exception as error:  # noqa: BLE001 - the caller decides
                found = error
            self._results[number] = found
            yield found

    def errors(self) -> list[Exception]:
        """Return the exceptions among the results."""
        return [found for found in self._results.values() if isinstance(found, Exception)]

    def handed_over(self) -> "FirstCalls":
        """Hand all results over to a pass; only one pass gets them."""
        results, self._results = self._results, {}
        return FirstCalls(results)

    def take(self, first: int | Positions | None, index: int = 0) -> Result | None:
        """Remove and return the result of an element by its number; None if there is no such result."""
        return self._results.pop(first + index, None) if isinstance(first, int) else None
