"""Calls a function once for each replica, as plain Python, in threads that meet at collectives.

One replica's code runs at a time, from one meeting to the next: replica 0 first. What a function
prints or appends comes in the same order each time, and JAX computes behind all of them together.
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import contextvars
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias, final

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.errors import described
from evenfeed.core.jax_door import jax
from evenfeed.replicas.mesh import Replicas

# Takes what each replica brought to a meeting; returns what each takes away.
Resolve: TypeAlias = Callable[[list[Any]], Sequence[Any]]

# How long an array that a compiled piece of a replica's code waits for may take, once that replica has ended.
_LATE_SECONDS: Final = 60.0


@final
class Abandoned(BaseException):
    """Ends a replica's thread because another one failed. Not an Exception: no user's code catches it."""


@final
@dataclass(slots=True)
class _Stop:
    """A replica that waits at a meeting."""

    what: str
    brought: Any
    resolve: Resolve
    origin: Origin | None


@cache
def replica_mark() -> Any:
    """Return the context that keeps JAX's caches of the replicas apart.

    A function that a user jits is traced once for each replica: what it closes over, such as the
    replica's number, differs.
    """
    return jax.make_user_context(default_value=None)  # pyright: ignore[reportAttributeAccessIssue]


@final
class Crew:
    """The replicas of one `run`, in step."""

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        self._count = replicas.count
        self._change = threading.Condition()
        self._turn: int | None = 0  # whose code may run; None: everybody's
        self._stops: list[_Stop | None] = [None] * self._count
        self._taken: list[Any] = [None] * self._count
        self._ended = [False] * self._count
        self._failed: tuple[int, BaseException] | None = None

    def run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Call each function for its replica, and return what they return.

        Replica 0 runs in the caller's thread, so that a debugger and Ctrl-C reach it.

        Raises:
            Exception: The first that a replica's function raised, with a note naming the replica.
        """
        results: list[Any] = [None] * self._count
        wide = jax.config.read("jax_enable_x64")

        def work(replica: int) -> None:
            try:
                results[replica] = self._work(replica, calls[replica], wide)
            except Abandoned:
                pass
            except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
                self._fail(replica, error)
            finally:
                self._end(replica)

        threads = [
            threading.Thread(
                target=contextvars.copy_context().run,
                args=(work, replica),
                name=f"evenfeed-replica-{replica}",
            )
            for replica in range(1, self._count)
        ]
        for thread in threads:
            thread.start()
        try:
            work(0)
            for thread in threads:
                thread.join()
        except BaseException as error:  # Ctrl-C while the others run
            self._fail(0, error)
            raise
        self._raise()
        return results

    def _work(self, replica: int, call: Callable[[], Any], wide: bool) -> Any:
        self._await_turn(replica)
        with ExitStack() as stack:
            stack.enter_context(jax.enable_x64(wide))
            stack.enter_context(jax.default_device(self.replicas.devices[replica]))
            stack.enter_context(replica_mark()((self.replicas, replica)))
            return call()

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
            self._stops[replica] = _Stop(what, brought, resolve, where_called())
            if self._all_are_here():
                self._resolve()
            self._pass_turn()
            self._change.wait_for(lambda: self._stops[replica] is None or self._is_over())
            self._check_going_on()
        self._await_turn(replica)
        return self._taken[replica]

    def _all_are_here(self) -> bool:
        return all(stop is not None for stop in self._stops)

    def _resolve(self) -> None:
        stops = [stop for stop in self._stops if stop is not None]
        if len({stop.what for stop in stops}) > 1:
            raise RuntimeError(_apart(stops))
        # The lock is free meanwhile: a function given to merge_call may take its time.
        self._change.release()
        try:
            shares = stops[-1].resolve([stop.brought for stop in stops])
        finally:
            self._change.acquire()
        self._taken = list(shares)
        self._stops = [None] * self._count
        if self._turn is not None:
            self._turn = -1  # replica 0 goes on first
        self._change.notify_all()

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

    def _is_over(self) -> bool:
        return self._failed is not None

    def _check_going_on(self) -> None:
        if self._failed is not None:
            raise Abandoned

    def release_turns(self) -> None:
        """Let all replicas run at once: one is inside a program that waits for the others."""
        with self._change:
            self._turn = None
            self._change.notify_all()

    # --- ends -------------------------------------------------------------------------------

    def _end(self, replica: int) -> None:
        with self._change:
            self._ended[replica] = True
            waiting = [(r, stop) for r, stop in enumerate(self._stops) if stop is not None]
            if waiting and self._failed is None and self._nobody_runs():
                other, stop = waiting[0]
                self._failed = (other, RuntimeError(_alone(other, stop, replica)))
            self._pass_turn()
            self._change.notify_all()

    def _nobody_runs(self) -> bool:
        return all(
            stop is not None or ended for stop, ended in zip(self._stops, self._ended, strict=True)
        )

    def _fail(self, replica: int, error: BaseException) -> None:
        with self._change:
            if self._failed is None:
                self._failed = (replica, error)
            self._change.notify_all()

    def _raise(self) -> None:
        if self._failed is None:
            return
        replica, error = self._failed
        if self._count > 1:
            error.add_note(f"while replica {replica} of {self._count} ran its function.")
        raise error

    def wait_in_program(
        self, arrived: Callable[[], bool], missing: Callable[[], list[int]]
    ) -> None:
        """Wait, inside a compiled piece of a replica's code, until the others have come there too.

        Raises:
            RuntimeError: One of them has ended, or failed, without coming.
        """
        self.release_turns()
        with self._change:
            while not arrived():
                gone = all(self._ended[replica] for replica in missing())
                woken = self._change.wait(_LATE_SECONDS if gone else 1.0)
                if self._failed is not None or (gone and not woken):
                    raise RuntimeError(f"Replicas {missing()} ended without the collective.")

    def announce(self) -> None:
        """Wake those who wait in a program."""
        with self._change:
            self._change.notify_all()


def _apart(stops: Sequence[_Stop]) -> str:
    seen = "; ".join(f"replica {r} at {stop.what} ({stop.origin})" for r, stop in enumerate(stops))
    return described(
        f"The replicas do not meet at the same place: {seen}.",
        fix="let every replica call the same collectives in the same order.",
    )


def _alone(waiting: int, stop: _Stop, ended: int) -> str:
    return described(
        f"Replica {waiting} waits at {stop.what}, but replica {ended} has returned without it.",
        fix="let every replica call the same collectives in the same order.",
        origin=stop.origin,
    )
