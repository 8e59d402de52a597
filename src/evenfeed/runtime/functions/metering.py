"""Measures how fast users' functions run, for explain()."""

from threading import Lock
from typing import final


@final
class Meter:
    """Counts the elements that a function has worked on, and the time that this took.

    Attributes:
        rows: How many elements.
        seconds: How long, added up over all threads.
        singly: How many of the elements it was called for one by one.
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
        """Elements per second of one thread; None before the first."""
        return self.rows / self.seconds if self.seconds else None
