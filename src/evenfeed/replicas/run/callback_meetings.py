"""Meetings of plain Python replicas inside code that the user compiles: `jit`, `scan`, `cond`.

A compiled program calls back to Python, and the callbacks of all replicas meet. They are paired by
collective, line of user code and how often it was reached, not by time: a program may run its parts in any order.
"""

import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from evenfeed.core.callsite import Origin
from evenfeed.core.conversion import Array
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.run.replica_threads import ReplicaThreads, Resolve

# Takes what each replica passed; returns the result for all of them.
Combine: TypeAlias = Callable[[Sequence[Sequence[Array]]], list[Array]]


@final
@dataclass(frozen=True, slots=True)
class Seat:
    """A replica's place in an active run, where it meets the others.

    A program that was traced in one run also serves a later run with the same seats. Runs that are active at the same
    time, in different user threads, have different seats.
    """

    replicas: Replicas
    slot: int
    number: int

    @property
    def index(self) -> int:
        """The global index of the replica."""
        return self.replicas.own[self.number]

    def meet(self, what: str, value: Any, resolve: Resolve) -> Any:
        """Meet the other replicas, in their threads (see `ReplicaThreads.meet`)."""
        return self.board.threads.meet(self.number, what, value, resolve)

    @property
    def board(self) -> "Board":
        """The board of the active run. A program outlives the run in which it was traced, so it must look it up."""
        return self.replicas.session.boards[self.slot]


@contextmanager
def assign_seats(threads: ReplicaThreads) -> Generator[list[Seat]]:
    """Register a run, and yield the seats of its replicas."""
    replicas, session = threads.replicas, threads.replicas.session
    boards = session.boards
    with session.lock:
        slot = next(s for s in range(len(boards) + 1) if s not in boards)
        boards[slot] = Board(threads)
    try:
        yield [Seat(replicas, slot, number) for number in range(replicas.local_count)]
    finally:
        with session.lock:
            del boards[slot]


def meet_in_callback(
    seat: Seat, what: str, origin: Origin | None, arrays: list[Array], combine: Combine
) -> list[Array]:
    """Meet the other replicas, from a callback of this replica's program."""
    seat.replicas.session.has_callbacks = True
    return seat.board.meet(seat.number, what, origin, arrays, combine)


@final
class _Meeting:
    """One meeting: the arrays so far, and the result."""

    def __init__(self) -> None:
        self.arrays_by_replica: dict[int, list[Array]] = {}
        self.result: list[Array] | None = None


@final
class Board:
    """Where the programs of one run exchange their arrays."""

    def __init__(self, threads: ReplicaThreads) -> None:
        self.threads = threads
        self._lock = threading.Lock()
        self._visits = Counter[tuple[str, int]]()
        self._meetings: dict[tuple[str, int], _Meeting] = {}

    def meet(
        self,
        replica: int,
        what: str,
        origin: Origin | None,
        arrays: list[Array],
        combine: Combine,
    ) -> list[Array]:
        """Return the result for all replicas, once all have reached the same call the same number of times."""
        count = self.threads.replicas.local_count
        key = f"{what} ({origin})"
        with self._lock:
            visit = self._visits[key, replica]
            self._visits[key, replica] += 1
            meeting = self._meetings.setdefault((key, visit), _Meeting())
            meeting.arrays_by_replica[replica] = arrays
            if len(meeting.arrays_by_replica) == count:
                del self._meetings[key, visit]  # the other replicas still hold a reference
        if len(meeting.arrays_by_replica) == count:
            try:
                meeting.result = combine([meeting.arrays_by_replica[r] for r in range(count)])
            except BaseException as error:
                self.threads.fail(replica, error)
                raise
        self.threads.wait_in_program(replica, key, lambda: meeting.result is not None)
        assert meeting.result is not None
        return meeting.result
