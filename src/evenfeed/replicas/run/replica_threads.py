"""Calls a function once for each replica, as plain Python, in threads that meet at collectives.

One replica's code runs at a time, from one meeting to the next: replica 0 first. What a function
prints or appends comes in the same order each time, and JAX computes behind all of them together.
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
from evenfeed.replicas.mesh import Replicas, not_met

# Takes what each replica brought to a meeting; returns what each takes away.
Resolve: TypeAlias = Callable[[list[Any]], Sequence[Any]]

# How long nothing may happen while compiled pieces of replicas' code wait for each other.
_LATE_SECONDS: Final = 20.0

# How long the caller waits for the threads of the others after Ctrl-C.
_PARTING_SECONDS: Final = 5.0


@final
class RunAbandoned(BaseException):
    """Ends a replica's thread because another one failed. Not an Exception: no user's code catches it."""


@final
@dataclass(slots=True)
class _Stop:
    """A replica that waits at a meeting."""

    what: str
    brought: Any
    resolve: Resolve
    origin: Origin | None

    def __str__(self) -> str:
        return f"{self.what} ({self.origin})"


@final
class Crew:
    """The replicas of one `run`, in step."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self._count = replicas.local_count
        self._change = threading.Condition()
        self._turn: int | None = 0  # whose code may run; None: everybody's
        self._stops: list[_Stop | None] = [None] * self._count
        self._taken: list[Any] = [None] * self._count
        self._ended = [False] * self._count
        self._failed: tuple[int, BaseException] | None = None
        self._in_programs: list[str | None] = [None] * self._count
        self._changes = 0

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Call each function for its replica, and return what they return.

        Replica 0 runs in the caller's thread, so that a debugger and Ctrl-C reach it.

        Raises:
            BaseException: The first that a replica's function raised, with a note naming the replica.
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
        except BaseException as error:  # noqa: BLE001 - Ctrl-C between all of this; raised below
            self.fail(0, error)
        started = {r: t for r, t in enumerate(threads, start=1) if t.ident is not None}
        if self._failed is not None:
            self._await_ends(started, None if _is_ordinary(self._failed) else _PARTING_SECONDS)
        for replica, thread in started.items():
            if self._ended[replica]:
                thread.join()
        self._raise([replica for replica in started if not self._ended[replica]])
        return results

    def _await_ends(self, others: Iterable[int], timeout: float | None = None) -> None:
        # Not by join(): in Python 3.11 a thread counts as ended once Ctrl-C has interrupted that.
        with self._change:
            self._change.wait_for(lambda: all(self._ended[r] for r in others), timeout)

    def _raise(self, running: Sequence[int]) -> None:
        """Raise what made a replica fail, if one did."""
        if self._failed is None:
            return
        replica, error = self._failed
        self._failed = (
            replica,
            RunAbandoned(),
        )  # the error's frames hold this crew: it must not hold them
        if self._count > 1:
            error.add_note(f"while replica {replica} of {self._count} ran its function.")
        if running:
            error.add_note(f"Replicas that still run, until they next meet the others: {running}.")
        try:
            raise error
        finally:
            del error

    # --- meetings ---------------------------------------------------------------------------

    def meet(self, replica: int, what: str, brought: Any, resolve: Resolve) -> Any:
        """Wait until every replica has come here, and return this one's share of what they make.

        Args:
            replica: Who comes.
            what: What for: all must come for the same.
            brought: What this replica brings.
            resolve: Makes the shares, called once, in the thread of the last to come.
        """
        with self._change:
            self._check_going_on()
            self._stops[replica] = _Stop(what, brought, resolve, where_called())
            self._note_change()
            if all(stop is not None for stop in self._stops):
                self._resolve()
            self._check_all_can_come()
            self._pass_turn()
            self._change.wait_for(lambda: self._stops[replica] is None or self._failed)
            self._check_going_on()
        self._await_turn(replica)
        return self._taken[replica]

    def _resolve(self) -> None:
        stops = [stop for stop in self._stops if stop is not None]
        if len({stop.what for stop in stops}) > 1:
            raise not_met([stop.what for stop in stops], _apart(stops), _IN_ORDER)
        # The lock is free meanwhile: a function given to merge_call may take its time.
        self._change.release()
        try:
            if (
                self.replicas.spans
            ):  # a collective of another shape, or another one, would end their processes
                self.replicas.told(stops[0].what)
            shares = list(stops[-1].resolve([stop.brought for stop in stops]))
        finally:
            self._change.acquire()
        self._taken = shares
        self._stops = [None] * self._count
        if self._turn is not None:
            self._turn = -1  # replica 0 goes on first
        self._note_change()

    def _pass_turn(self) -> None:
        """Let the next replica run that neither waits nor has ended."""
        if self._turn is None:
            return
        others = range(self._turn + 1, self._count)
        free = [r for r in others if self._stops[r] is None and not self._ended[r]]
        self._turn = free[0] if free else self._count
        self._change.notify_all()

    def _await_turn(self, replica: int) -> None:
        with self._change:
            self._change.wait_for(lambda: self._turn in (None, replica) or self._failed)
            self._check_going_on()

    def _check_going_on(self) -> None:
        if self._failed is not None:
            raise RunAbandoned

    def _check_all_can_come(self) -> None:
        """Fail where somebody waits at a meeting that another one has ended without."""
        waiting = [(r, stop) for r, stop in enumerate(self._stops) if stop is not None]
        gone = [r for r, ended in enumerate(self._ended) if ended]
        if waiting and gone and len(waiting) + len(gone) == self._count:
            replica, stop = waiting[0]
            self.fail(replica, RuntimeError(_alone(replica, stop, gone[0])))

    # --- ends -------------------------------------------------------------------------------

    def _end(self, replica: int) -> None:
        with self._change:
            self._ended[replica] = True
            self._note_change()
            self._check_all_can_come()
            self._pass_turn()

    def fail(self, replica: int, error: BaseException) -> None:
        """Let all replicas end, and the run raise `error`, unless one failed before."""
        with self._change:
            if self._failed is None:
                self._failed = (replica, error)
            self._note_change()

    # --- compiled pieces --------------------------------------------------------------------

    def wait_in_program(self, replica: int, what: str, is_done: Callable[[], bool]) -> None:
        """Wait, inside a compiled piece of a replica's code, until the others have come there too.

        All replicas run at once from then on: this one cannot pass its turn.

        Raises:
            RuntimeError: Another one failed, or all wait at different places.
        """
        with self._change:
            self._turn = None
            self._in_programs[replica] = what
            self._note_change()
            while not is_done():
                seen = self._changes
                if self._failed is None and not self._change.wait(_LATE_SECONDS):
                    self._check_somebody_runs(seen)
                if self._failed is not None:
                    raise RuntimeError("Another replica failed.")
            self._in_programs[replica] = None

    def _check_somebody_runs(self, seen: int) -> None:
        """Fail where nothing has changed for long, and everybody waits or has ended."""
        places = [
            stop or inside or ("the end" if ended else None)
            for stop, inside, ended in zip(self._stops, self._in_programs, self._ended, strict=True)
        ]
        if seen == self._changes and all(places):
            replica = next(r for r, inside in enumerate(self._in_programs) if inside)
            self.fail(replica, RuntimeError(described(_apart(places), fix=_IN_ORDER)))

    def _note_change(self) -> None:
        with self._change:
            self._changes += 1
            self._change.notify_all()


def _is_ordinary(failed: tuple[int, BaseException]) -> bool:
    """Tell whether all replicas will end soon; after Ctrl-C, code that meets nobody knows nothing of it."""
    return isinstance(failed[1], Exception)


def _apart(places: Sequence[Any]) -> str:
    seen = "; ".join(f"replica {replica} at {place}" for replica, place in enumerate(places))
    return f"The replicas do not meet at the same place: {seen}."


_IN_ORDER: Final = "let every replica call the same collectives in the same order."


def _alone(waiting: int, stop: _Stop, ended: int) -> str:
    return described(
        f"Replica {waiting} waits at {stop.what}, but replica {ended} has returned without it.",
        fix=_IN_ORDER,
        origin=stop.origin,
    )
