"""What came of a function's first elements, before a pass over them began."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, final

from evenfeed.core.block import Positions
from evenfeed.plan.ordering import made_by_function
from evenfeed.runtime.run import FirstElements

# The parts of a result, or what the function raised.
Result: TypeAlias = list[Any] | Exception


@final
class FirstCalls:
    """Calls a function with the first elements, and keeps what comes of them for the pass that follows.

    A function that has effects so is called once for each element.
    """

    def __init__(self, results: dict[int, Result] | None = None) -> None:
        self._results: dict[int, Result] = results or {}

    def __bool__(self) -> bool:
        return bool(self._results)

    def make(
        self, call: Callable[[list[Any], int], list[Any]], elements: FirstElements | None
    ) -> Iterator[Result]:
        """Yield what comes of one element after the other."""
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
        """Return what was raised."""
        return [found for found in self._results.values() if isinstance(found, Exception)]

    def handed_over(self) -> "FirstCalls":
        """Return all results to the one pass that may have them."""
        results, self._results = self._results, {}
        return FirstCalls(results)

    def take(self, first: int | Positions | None, index: int = 0) -> Result | None:
        """Return what came of an element, by its number; None if the function was not called with it."""
        return self._results.pop(first + index, None) if isinstance(first, int) else None
