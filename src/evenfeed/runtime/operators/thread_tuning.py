"""Measures whether threads make a map faster, for AUTOTUNE."""

from time import perf_counter
from typing import Final, final

from evenfeed.runtime.functions.row_function import RowFunction

# In seconds and elements: each trial takes at least this long, so that it says something.
_TRIAL: Final = 0.005
_TRIAL_ROWS: Final = 4  # for each thread
# How often each way is tried before the first choice. The best trial of each counts: a busy machine spoils some.
_TRIALS: Final = 3
# In seconds, until the other way is tried again; doubled while the choice stays the same.
_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 120.0
# Threads must be faster than this fraction of the time, because they also take memory and cores.
_PAYS: Final = 0.9
# Threads that take this many times as long are not tried again before the first choice.
_HOPELESS: Final = 2.0


@final
class Tuner:
    """Chooses whether a function is called in the thread that reads, or in several threads.

    It compares the time for an element from end to end, with all that the consumer does in between. So threads win if
    they work while the consumer does, and lose if they take the GIL from it.

    Args:
        threads: The number of threads to compare with.
        function: The function. Its record shows the choice.

    Attributes:
        is_here: Whether the function is called in the thread that reads.
    """

    def __init__(self, threads: int, function: RowFunction) -> None:
        self.is_here = True
        self._threads = threads
        self._function = function
        self._best: dict[bool, float] = {}  # the shortest time for an element, by `is_here`
        self._trials = 2 * _TRIALS  # how many to make before the next choice
        self._wait = _FIRST_WAIT
        self._rest_until = 0.0
        self._begin()

    def _begin(self) -> None:
        self._start: float | None = None
        self._rows = 0
        self._skipped = 0

    def learn(self, rows: int, *, is_settled: bool) -> None:
        """Count elements that were delivered.

        Args:
            rows: How many.
            is_settled: Whether none of them was processed the other way.
        """
        now = perf_counter()
        if self._rest_until > now:
            return
        if self._rest_until:
            self._rest_until = 0.0
            self._begin()
        if self._start is None:
            self._skipped += rows
            # The first results of threads are late, and those that were read ahead come at once.
            if is_settled and (self.is_here or self._skipped > 2 * self._threads):
                self._start = now
            return
        self._rows += rows
        least = 1 if self.is_here else _TRIAL_ROWS * self._threads
        if now - self._start >= _TRIAL and self._rows >= least:
            self._tried((now - self._start) / self._rows, now)

    def _tried(self, each: float, now: float) -> None:
        """Record a trial; go on with the other way, or choose one."""
        self._best[self.is_here] = min(each, self._best.get(self.is_here, each))
        self._trials -= 1
        if self._trials and not self._is_hopeless:
            self.is_here = not self.is_here
        else:
            self._choose(now)
        self._begin()

    @property
    def _is_hopeless(self) -> bool:
        """True if both ways were tried, and threads are so slow that a busy machine does not explain it."""
        return len(self._best) == 2 and self._best[False] > _HOPELESS * self._best[True]

    def _choose(self, now: float) -> None:
        before = self._function.record.is_called_here
        self.is_here = self._best[False] > _PAYS * self._best[True]
        self._function.record.is_called_here = self.is_here
        self._wait = min(2 * self._wait, _LONGEST_WAIT) if before == self.is_here else _FIRST_WAIT
        self._rest_until, self._trials, self._best = now + self._wait, 2, {}
