"""One process that maps elements: started, asked, and ended."""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, final

from evenfeed.core.block import Block, Outcome
from evenfeed.core.errors import (
    DeadlineExceededError,
    EvenfeedError,
    FailedPreconditionError,
    UnavailableError,
)
from evenfeed.core.lazy import multiprocessing_spawn, socket, subprocess
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.processes.portable import GUARD
from evenfeed.runtime.processes.shared_memory import Link, counter_in, nameless_memory, packed

_START_SECONDS: Final = 120.0  # modules on a slow disk take their time
_END_SECONDS: Final = 1.0

# The program is loaded again only where a function is defined in it; where modules are is told before.
_PROGRAM: Final = ("sys_argv", "orig_dir", "init_main_from_name", "init_main_from_path")


@final
class ChildDied(Exception):  # noqa: N818 - it becomes an error for one element
    """A process ended at a row of what it was given.

    Attributes:
        row: Which one.
        how: How it ended.
    """

    def __init__(self, row: int, how: str) -> None:
        super().__init__(row, how)
        self.row = row
        self.how = how


@final
class Child:
    """A process that maps elements.

    It is never forked, for a fork of a process in which JAX runs may hang; and none of Python's own
    pools, for these load the user's program, and so JAX, in each process, do not tell at which element a
    process died, and send each element by itself.

    Args:
        number: Of the process, for messages.
        function: What it runs.
    """

    def __init__(self, number: int, function: RowFunction) -> None:
        self._function = function
        self._name = f"process {number} of map"
        self._connection, theirs = socket.socketpair()
        self._link = Link(self._connection)
        memory = nameless_memory(8)
        try:
            self._process = _started((theirs.fileno(), memory), self._name)
        finally:
            theirs.close()
            self._row = counter_in(memory)

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"{self._name} (pid {self._process.pid})"

    def prepare(self) -> None:
        """Send it the function, and wait until it is loaded."""
        again = multiprocessing_spawn.get_preparation_data(self._name)
        again = {key: again[key] for key in _PROGRAM if key in again}
        self._connection.settimeout(_START_SECONDS)
        try:
            self._link.send((again, packed(self._function.sendable())))
            failed = self._link.receive()
        except TimeoutError:
            raise DeadlineExceededError(
                f"{self.name.capitalize()} has not loaded {self._function.name} "
                f"in {_START_SECONDS:.0f} s.",
                fix="look what the modules that it imports wait for.",
                origin=self._function.origin,
            ) from None
        except (EOFError, OSError):
            raise self._error(
                f"{self._how_it_ended()} before it had loaded {self._function.name}",
                fix="look at what it printed.",
            ) from None
        if failed is not None:
            raise self._not_loaded(*failed)
        self._connection.settimeout(None)

    def call(self, block: Block, number: int) -> tuple[list[Outcome], float, int]:
        """Return what became of the rows, and how many seconds and bytes they took.

        Raises:
            ChildDied: The process ended at one of them.
        """
        self._row[0] = 0
        try:
            size = self._link.send((block, number))
            outcomes, seconds = self._link.receive()
        except (EOFError, OSError):
            raise ChildDied(int(self._row[0]), self._how_it_ended()) from None
        return outcomes, seconds, size

    def died_at(self, died: ChildDied, number: int) -> EvenfeedError:
        """Return the error for the element at which the process died."""
        return self._error(
            f"{died.how} while it mapped element {number} with {self._function.name}",
            fix="run the function on that element alone to see why; if the machine has too little memory, "
            "ask for fewer processes.",
        )

    def hang_up(self) -> None:
        """Let the process end, and whoever waits for it."""
        with suppress(OSError):  # it may be gone already
            self._connection.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """End the process, now; nothing of it stays."""
        self.hang_up()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._connection.close()

    def _how_it_ended(self) -> str:
        self.end()
        code = self._process.returncode
        if code >= 0:
            return f"{self.name} ended with exit code {code}"
        try:
            return f"{self.name} was killed by {signal.Signals(-code).name}"
        except ValueError:  # a real-time signal has no name
            return f"{self.name} was killed by signal {-code}"

    def _error(self, what: str, fix: str) -> EvenfeedError:
        what = f"{what[0].upper()}{what[1:]}."
        return UnavailableError(what, fix=fix, origin=self._function.origin)

    def _not_loaded(self, text: str, was_loading_program: bool, traceback: str) -> EvenfeedError:
        self.end()
        name = self._function.name
        what = f"another process cannot load {name}: {text}"
        if was_loading_program:
            what = f"the program failed when another process loaded it, for {name}: {text}"
        error = FailedPreconditionError(
            f"{what[0].upper()}{what[1:]}",
            fix=GUARD if was_loading_program else "make its module one that can be imported.",
            origin=self._function.origin,
        )
        error.add_note(f"in {self.name}:\n{traceback}")
        return error


def _started(descriptors: tuple[int, int], name: str) -> "subprocess.Popen[bytes]":
    given = ", ".join(map(repr, (*descriptors, name, os.getpid())))
    # As modules are found here, so they are there, evenfeed's own first.
    path = [place for place in sys.path if isinstance(place, str)]  # pyright: ignore[reportUnnecessaryIsInstance]
    program = f"import sys; sys.path[:] = {path!r}; from evenfeed.runtime.processes.child import main; main({given})"
    # Should a function load JAX, it must not take the accelerator that its parent has.
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    with _no_interrupt():
        return subprocess.Popen(
            [*_interpreter(), "-c", program],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            env=environment,
        )


def _interpreter() -> list[Any]:
    """Return Python's own command, with the flags that this process was started with."""
    command = multiprocessing_spawn.get_command_line()
    return command[: command.index("-c")]


@contextmanager
def _no_interrupt() -> Generator[None]:
    """Keep Ctrl-C from a process that has just started: it would print a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
