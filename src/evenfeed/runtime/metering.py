"""Measures how fast users' functions run, for explain()."""

from threading import Lock
from typing import final


@final
class Meter:
    """Counts the elements that a function has worked on, and the time that this took.

    Attributes:
        rows: How many elements.
        seconds: How long, added up over all threads.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.seconds = 0.0
        self._lock = Lock()

    def add(self, rows: int, seconds: float) -> None:
        """Count one more call."""
        with self._lock:
            self.rows += rows
            self.seconds += seconds

    @property
    def rate(self) -> float | None:
        """Elements per second of one thread; None before the first."""
        return self.rows / self.seconds if self.seconds else None
