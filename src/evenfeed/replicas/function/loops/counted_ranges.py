"""The numbers of a loop over `tf.range`, which are put on a device only if the loop needs them there."""

from collections.abc import Generator
from typing import Any, Final, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.tensors import number_ranges

_MOST: Final = 2**31


@final
class CountedRange:
    """The result of `tf.range` on Python numbers, on the host.

    Args:
        bounds: The arguments of `tf.range`.

    Attributes:
        numbers: The numbers.
        size: How many there are.
    """

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self._bounds = bounds
        self.numbers: Array = np.arange(*bounds, dtype=np.int32)
        self.size = len(self.numbers)

    def on_device(self) -> Any:
        """Return the tensor that `tf.range` returns."""
        bounds: Any = self._bounds
        return number_ranges.range(*bounds)


def counted_range(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what a loop iterates over: the result of a function, usually `tf.range`."""
    small = all(type(each) is int and abs(each) < _MOST for each in args)
    if (
        function is not number_ranges.range
        or kwargs
        or not small
        or (len(args) > 2 and not args[2])
    ):
        return function(*args, **kwargs)
    return CountedRange(args)


def all_of(numbers: Any) -> Any:
    """Return the numbers of a loop as a tensor."""
    return numbers.on_device() if isinstance(numbers, CountedRange) else numbers


@final
class LeftIterations:
    """The iterations of a loop that run as plain Python. Adds to an error in which of them it was raised.

    Args:
        numbers: Their numbers.
        done: How many iterations ran before them.
    """

    def __init__(self, numbers: Any, done: int) -> None:
        self._numbers = numbers
        self._done = done
        self._begun = 0

    def __iter__(self) -> Generator[Any]:
        for number in self._numbers:
            self._begun += 1
            yield number

    def note(self, error: Exception) -> None:
        """Add the iteration to an error that was raised in it."""
        if self._begun:
            every = self._done + len(self._numbers)
            error.add_note(f"in iteration {self._done + self._begun - 1} of {every} of the loop.")
