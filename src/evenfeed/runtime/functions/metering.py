"""Measures how fast user functions run, for explain()."""

from threading import Lock
from typing import final


@final
class Meter:
    """Counts the elements that a function has processed, and the time that this took.

    Attributes:
        rows: The number of elements.
        seconds: The time, summed over all threads.
        singly: How many of the elements were processed one by one.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.seconds = 0.0
        self.singly = 0
        self._lock = Lock()

    def add(self, rows: int, seconds: float, *, singly: bool = False) -> None:
        """Count more elements."""
        with self._lock:
            self.rows += rows
            self.seconds += seconds
            self.singly += rows if singly else 0

    @property
    def rate(self) -> float | None:
        """Elements per second and thread; None before the first element."""
        return self.rows / self.seconds if self.seconds else None
