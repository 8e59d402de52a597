"""Meetings of plain Python replicas inside what a user compiles: `jit`, `scan`, `cond`.

A compiled program calls back, and the calls of all replicas meet. They are paired by what they are for
and by how often that was reached, not by when they come: a program may run its parts in any order.
"""

import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, final
from weakref import WeakSet

from evenfeed.core.callsite import Origin
from evenfeed.core.conversion import Array
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.run.replica_threads import Crew

# Takes what each replica brought; returns what every one of them gets.
Combine: TypeAlias = Callable[[Sequence[Sequence[Array]]], list[Array]]

# The runs that are going on. A program outlives the run that it was traced in, so it does not know its run.
_boards: Final[dict[tuple[Replicas, int], "Board"]] = {}
_lock: Final = threading.Lock()

# Those that have programs which call back.
_calling: Final[WeakSet[Replicas]] = WeakSet()


@final
@dataclass(frozen=True, slots=True)
class Seat:
    """Where a replica meets the others.

    A program that was traced in one run serves the next one that has the same seats. Runs that go on at
    the same time, in threads of the user's, have seats of their own.
    """

    replicas: Replicas
    slot: int
    number: int

    @property
    def crew(self) -> Crew:
        """The replicas of the run that goes on."""
        return _boards[self.replicas, self.slot].crew


@contextmanager
def seated(crew: Crew) -> Generator[list[Seat]]:
    """Give the replicas of a run their seats."""
    replicas = crew.replicas
    with _lock:
        slot = next(s for s in range(len(_boards) + 1) if (replicas, s) not in _boards)
        _boards[replicas, slot] = Board(crew)
    try:
        yield [Seat(replicas, slot, number) for number in range(replicas.local_count)]
    finally:
        with _lock:
            del _boards[replicas, slot]


def called_back(
    seat: Seat, what: str, origin: Origin | None, arrays: list[Array], combine: Combine
) -> list[Array]:
    """Meet the other replicas, called by a program of this one."""
    _calling.add(seat.replicas)
    return _boards[seat.replicas, seat.slot].meet(seat.number, what, origin, arrays, combine)


def call_back(replicas: Replicas) -> bool:
    """Tell whether programs of these replicas have called back."""
    return replicas in _calling


@final
class _Round:
    """One meeting: what came so far, and what was made of it."""

    def __init__(self) -> None:
        self.brought: dict[int, list[Array]] = {}
        self.made: list[Array] | None = None


@final
class Board:
    """Where the programs of one run leave what they bring, and find what the others brought."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self._lock = threading.Lock()
        self._times = Counter[tuple[str, int]]()
        self._rounds: dict[tuple[str, int], _Round] = {}

    def meet(
        self,
        replica: int,
        what: str,
        origin: Origin | None,
        arrays: list[Array],
        combine: Combine,
    ) -> list[Array]:
        """Return what is made of what all replicas bring, to the same call of the user's, for the same time."""
        count = self.crew.replicas.local_count
        said = f"{what} ({origin})"
        with self._lock:
            time = self._times[said, replica]
            self._times[said, replica] += 1
            meeting = self._rounds.setdefault((said, time), _Round())
            meeting.brought[replica] = arrays
            if len(meeting.brought) == count:
                del self._rounds[said, time]  # the others hold it still
        if len(meeting.brought) == count:
            try:
                meeting.made = combine([meeting.brought[r] for r in range(count)])
            except BaseException as error:
                self.crew.fail(replica, error)
                raise
        self.crew.wait_in_program(replica, said, lambda: meeting.made is not None)
        assert meeting.made is not None
        return meeting.made
