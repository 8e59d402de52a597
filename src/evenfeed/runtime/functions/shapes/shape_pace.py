"""Measures whether elements of many shapes run faster one by one or by programs, of which each shape needs its own."""

from collections.abc import Generator
from contextlib import contextmanager
from math import inf
from time import perf_counter
from typing import final


@final
class ShapePace:
    """How long elements of different shapes take: one by one, and in calls of programs."""

    def __init__(self) -> None:
        # The least time that one element, and one call of a program, took. The first ones take longer.
        self._element = inf
        self._call = 0.0
        # The time that all elements took one by one, and that all programs took to trace and compile.
        self._singly = 0.0
        self._preparing = 0.0

    def add_singly(self, seconds: float, count: int) -> None:
        """Note how long elements took, one by one."""
        self._element = min(self._element, seconds / count)
        self._singly += seconds

    def add_call(self, seconds: float) -> None:
        """Note how long a call of a program took."""
        self._call = min(self._call or seconds, seconds)

    def is_faster_singly(self, count: int) -> bool:
        """Return True if some elements take less time one by one than in a call."""
        return count * self._element < self._call

    @property
    def may_prepare(self) -> bool:
        """Whether elements have taken as long one by one as programs have taken so far.

        So programs that are hardly used at most double the time.
        """
        return self._singly >= self._preparing

    @contextmanager
    def preparing(self) -> Generator[None]:
        """Measure how long a program takes to trace or compile."""
        start = perf_counter()
        try:
            yield
        finally:
            self._preparing += perf_counter() - start
