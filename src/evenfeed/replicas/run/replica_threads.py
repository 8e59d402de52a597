"""Calls a function once per replica, as plain Python, in threads that meet at collectives.

Only one replica's code runs at a time, from one meeting to the next, replica 0 first. So what a function prints or
appends has the same order each time, while JAX computes asynchronously for all of them.
"""

import contextvars
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, final

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.concurrency.threads import background
from evenfeed.core.errors import described
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.session import not_met

# Takes what each replica passed to a meeting; returns each replica's share.
Resolve: TypeAlias = Callable[[list[Any]], Sequence[Any]]

# How long nothing may change while compiled code of replicas waits for each other.
_LATE_SECONDS: Final = 20.0

# How long the caller waits for the other threads after Ctrl-C.
_JOIN_SECONDS: Final = 5.0


@final
class RunAbandoned(BaseException):
    """Ends a replica's thread because another one failed. Not an Exception, so that user code does not catch it."""


@final
@dataclass(slots=True)
class _Stop:
    """Where a replica waits: a meeting."""

    what: str
    value: Any
    resolve: Resolve
    origin: Origin | None

    def __str__(self) -> str:
        return f"{self.what} ({self.origin})"


@final
class ReplicaThreads:
    """The replicas of one `run`, in lockstep."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self._count = replicas.local_count
        self._change = threading.Condition()
        self._turn: int | None = 0  # the replica whose code may run; None: all may
        self._stops: list[_Stop | None] = [None] * self._count
        self._shares: list[Any] = [None] * self._count
        self._ended = [False] * self._count
        self._failed: tuple[int, BaseException] | None = None
        self._in_programs: list[str | None] = [None] * self._count
        self._changes = 0

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Call one function per replica, and return their results.

        Replica 0 runs in the caller's thread, so that a debugger and Ctrl-C reach it.

        Raises:
            BaseException: The first error that a replica's function raised, with a note naming the replica.
        """
        results: list[Any] = [None] * self._count

        def work(replica: int) -> None:
            try:
                self._await_turn(replica)
                results[replica] = calls[replica]()
            except RunAbandoned:
                pass
            except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
                self.fail(replica, error)
            finally:
                self._end(replica)

        threads = [
            background.thread(
                partial(contextvars.copy_context().run, partial(work, replica)),
                f"evenfeed-replica-{replica}",
                partial(self.fail, replica, RunAbandoned()),
            )
            for replica in range(1, self._count)
        ]
        try:
            for thread in threads:
                thread.start()
            work(0)
            self._await_ends(range(1, self._count))
        except BaseException as error:  # noqa: BLE001 - Ctrl-C at any point; raised below
            self.fail(0, error)
        started = {r: t for r, t in enumerate(threads, start=1) if t.ident is not None}
        if self._failed is not None:
            self._await_ends(started, None if _is_exception(self._failed) else _JOIN_SECONDS)
        for replica, thread in started.items():
            if self._ended[replica]:
                thread.join()
        self._raise_failure([replica for replica in started if not self._ended[replica]])
        return results

    def _await_ends(self, others: Iterable[int], timeout: float | None = None) -> None:
        # Not join(): in Python 3.11, a thread counts as ended once Ctrl-C has interrupted it.
        with self._change:
            self._change.wait_for(lambda: all(self._ended[r] for r in others), timeout)

    def _raise_failure(self, running: Sequence[int]) -> None:
        """Raise the error that made a replica fail, if any."""
        if self._failed is None:
            return
        replica, error = self._failed
        self._failed = (
            replica,
            RunAbandoned(),
        )  # the error's frames refer to this object: avoid a reference cycle
        if self._count > 1:
            error.add_note(f"while replica {replica} of {self._count} ran its function.")
        if running:
            error.add_note(f"These replicas run on until they next meet the others: {running}.")
        try:
            raise error
        finally:
            del error

    # --- meetings ---------------------------------------------------------------------------

    def meet(self, replica: int, what: str, value: Any, resolve: Resolve) -> Any:
        """Wait until every replica has reached this meeting, and return this replica's share of the result.

        Args:
            replica: The index of the calling replica.
            what: The purpose, which must be the same on all replicas.
            value: What this replica passes.
            resolve: Computes the shares. Called once, in the thread of the last replica to arrive.
        """
        with self._change:
            self._check_not_failed()
            self._stops[replica] = _Stop(what, value, resolve, where_called())
            self._note_change()
            if all(stop is not None for stop in self._stops):
                self._resolve()
            self._check_nobody_missing()
            self._pass_turn()
            self._change.wait_for(lambda: self._stops[replica] is None or self._failed)
            self._check_not_failed()
        self._await_turn(replica)
        return self._shares[replica]

    def _resolve(self) -> None:
        stops = [stop for stop in self._stops if stop is not None]
        if len({stop.what for stop in stops}) > 1:
            raise not_met([stop.what for stop in stops], _mismatch(stops), _SAME_ORDER)
        # Released meanwhile: a function passed to merge_call may take long.
        self._change.release()
        try:
            if self.replicas.spans:  # a mismatched collective would kill the workers' processes
                self.replicas.session.exchange(stops[0].what)
            shares = list(stops[-1].resolve([stop.value for stop in stops]))
        finally:
            self._change.acquire()
        self._shares = shares
        self._stops = [None] * self._count
        if self._turn is not None:
            self._turn = -1  # replica 0 continues first
        self._note_change()

    def _pass_turn(self) -> None:
        """Let the next replica run that is neither waiting nor done."""
        if self._turn is None:
            return
        others = range(self._turn + 1, self._count)
        free = [r for r in others if self._stops[r] is None and not self._ended[r]]
        self._turn = free[0] if free else self._count
        self._change.notify_all()

    def _await_turn(self, replica: int) -> None:
        with self._change:
            self._change.wait_for(lambda: self._turn in (None, replica) or self._failed)
            self._check_not_failed()

    def _check_not_failed(self) -> None:
        if self._failed is not None:
            raise RunAbandoned

    def _check_nobody_missing(self) -> None:
        """Fail if a replica waits at a meeting and another has returned without it."""
        waiting = [(r, stop) for r, stop in enumerate(self._stops) if stop is not None]
        gone = [r for r, ended in enumerate(self._ended) if ended]
        if waiting and gone and len(waiting) + len(gone) == self._count:
            replica, stop = waiting[0]
            self.fail(replica, RuntimeError(_missing_replica(replica, stop, gone[0])))

    # --- ends -------------------------------------------------------------------------------

    def _end(self, replica: int) -> None:
        with self._change:
            self._ended[replica] = True
            self._note_change()
            self._check_nobody_missing()
            self._pass_turn()

    def fail(self, replica: int, error: BaseException) -> None:
        """Make all replicas stop and the run raise `error`, unless one failed before."""
        with self._change:
            if self._failed is None:
                self._failed = (replica, error)
            self._note_change()

    # --- compiled pieces --------------------------------------------------------------------

    def wait_in_program(self, replica: int, what: str, is_done: Callable[[], bool]) -> None:
        """Wait, in a callback from compiled code, until the others have reached the same point.

        From then on all replicas run at once: this one cannot pass its turn.

        Raises:
            RuntimeError: Another replica failed, or all wait at different points.
        """
        with self._change:
            self._turn = None
            self._in_programs[replica] = what
            self._note_change()
            while not is_done():
                seen = self._changes
                if self._failed is None and not self._change.wait(_LATE_SECONDS):
                    self._check_not_deadlocked(seen)
                if self._failed is not None:
                    raise RuntimeError("Another replica failed.")
            self._in_programs[replica] = None

    def _check_not_deadlocked(self, seen: int) -> None:
        """Fail if nothing has changed for long, and every replica waits or has ended."""
        places = [
            stop or inside or ("the end" if ended else None)
            for stop, inside, ended in zip(self._stops, self._in_programs, self._ended, strict=True)
        ]
        if seen == self._changes and all(places):
            replica = next(r for r, inside in enumerate(self._in_programs) if inside)
            self.fail(replica, RuntimeError(described(_mismatch(places), fix=_SAME_ORDER)))

    def _note_change(self) -> None:
        with self._change:
            self._changes += 1
            self._change.notify_all()


def _is_exception(failed: tuple[int, BaseException]) -> bool:
    """Return True if all replicas will stop soon. After Ctrl-C, code without meetings does not notice."""
    return isinstance(failed[1], Exception)


def _mismatch(places: Sequence[Any]) -> str:
    seen = "; ".join(f"replica {replica} at {place}" for replica, place in enumerate(places))
    return f"The replicas do not meet at the same collective: {seen}."


_SAME_ORDER: Final = "make every replica call the same collectives in the same order."


def _missing_replica(waiting: int, stop: _Stop, ended: int) -> str:
    return described(
        f"Replica {waiting} waits at {stop.what}, but replica {ended} has returned without calling it.",
        fix=_SAME_ORDER,
        origin=stop.origin,
    )
