"""Starts, calls and ends one process that maps elements."""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, final

from evenfeed.core.block import Block, Outcome
from evenfeed.core.concurrency.progress import SETTING as PROGRESS
from evenfeed.core.errors import (
    DeadlineExceededError,
    EvenfeedError,
    FailedPreconditionError,
    UnavailableError,
)
from evenfeed.core.lazy import multiprocessing_spawn, socket, subprocess
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.processes.pickling import pickled_function, unsendable
from evenfeed.runtime.processes.portable import GUARD
from evenfeed.runtime.processes.shared_memory import (
    CONNECTION_CLOSED,
    Link,
    anonymous_memory,
    counter_in,
)

_START_SECONDS: Final = 120.0  # imports from a slow disk take long
_END_SECONDS: Final = 1.0

# What the child needs to load the main program again. It gets sys.path before that (`_started`).
_PROGRAM: Final = ("sys_argv", "orig_dir", "init_main_from_name", "init_main_from_path")


@final
class ChildDied(Exception):  # noqa: N818 - it becomes an error for one element
    """A process died at a row of its Block.

    Attributes:
        row: The index of the row.
        how: How the process ended.
    """

    def __init__(self, row: int, how: str) -> None:
        super().__init__(row, how)
        self.row = row
        self.how = how


@final
class Child:
    """A process that maps elements.

    It is never forked, because a fork of a process that runs JAX may hang. Python's own pools do not fit
    either: they load the main program, and so JAX, in each process, do not report at which element a process
    died, and send each element separately.

    Args:
        number: The number of the process, for messages.
        function: The function that it runs.
    """

    def __init__(self, number: int, function: RowFunction) -> None:
        self._function = function
        self._name = f"process {number} of map"
        self._connection, theirs = socket.socketpair()
        self._link = Link(self._connection)
        memory = anonymous_memory(8)
        try:
            self._process = _started((theirs.fileno(), memory), self._name)
        finally:
            theirs.close()
            self._row = counter_in(memory)

    @property
    def name(self) -> str:
        """The name of the process in errors."""
        return f"{self._name} (pid {self._process.pid})"

    def prepare(self) -> None:
        """Send the function, and wait until the process has loaded it."""
        preparation = multiprocessing_spawn.get_preparation_data(self._name)
        preparation = {key: preparation[key] for key in _PROGRAM if key in preparation}
        pickled = self._pickled()
        self._connection.settimeout(_START_SECONDS)
        try:
            self._link.send((preparation, pickled))
            failed = self._link.receive()
        except TimeoutError:
            raise DeadlineExceededError(
                f"{self.name.capitalize()} did not load {self._function.name} "
                f"within {_START_SECONDS:.0f} s.",
                fix="find out what the modules that it imports are waiting for.",
                origin=self._function.origin,
            ) from None
        except (EOFError, OSError):
            raise self._error(
                f"{self._how_it_ended()} before it had loaded {self._function.name}",
                fix="check what it printed.",
            ) from None
        if failed is not None:
            raise self._not_loaded(*failed)
        self._connection.settimeout(None)

    def _pickled(self) -> bytes:
        try:
            return pickled_function(self._function.sendable())
        except Exception as error:
            self.end()
            function = self._function
            raise unsendable(function.calling.function, error, function.origin) from error

    def call(self, block: Block, number: int) -> tuple[list[Outcome], float, float, int]:
        """Return the outcomes of the rows, how many seconds they took and waited, and how many bytes were sent.

        Raises:
            ChildDied: The process died at one of them.
        """
        self._row[0] = 0
        try:
            size = self._link.send((block, number))
            outcomes, seconds, waited = self._link.receive()
        except (EOFError, OSError):
            raise ChildDied(int(self._row[0]), self._how_it_ended()) from None
        return outcomes, seconds, waited, size

    def died_at(self, died: ChildDied, number: int) -> EvenfeedError:
        """Return the error for the element at which the process died."""
        return self._error(
            f"{died.how} while it mapped element {number} with {self._function.name}",
            fix="run the function on that element alone to see why; if the machine runs out of memory, "
            "use fewer processes.",
        )

    def hang_up(self) -> None:
        """Close the connection, which ends the process and wakes any thread that waits for it."""
        with suppress(OSError):  # it may be gone already
            self._connection.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """End the process at once, and release its resources."""
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
        if code == CONNECTION_CLOSED:
            return f"{self.name} closed its connection to this program"
        if code >= 0:
            return f"{self.name} ended with exit code {code}"
        try:
            return f"{self.name} was killed by {signal.Signals(-code).name}"
        except ValueError:  # real-time signals have no name
            return f"{self.name} was killed by signal {-code}"

    def _error(self, what: str, fix: str) -> EvenfeedError:
        what = f"{what[0].upper()}{what[1:]}."
        return UnavailableError(what, fix=fix, origin=self._function.origin)

    def _not_loaded(self, text: str, was_loading_program: bool, traceback: str) -> EvenfeedError:
        self.end()
        name = self._function.name
        what = f"another process cannot load {name}: {text}"
        if was_loading_program:
            what = f"the program failed when another process loaded it to find {name}: {text}"
        error = FailedPreconditionError(
            f"{what[0].upper()}{what[1:]}",
            fix=GUARD if was_loading_program else "make sure that its module can be imported.",
            origin=self._function.origin,
        )
        error.add_note(f"in {self.name}:\n{traceback}")
        return error


def _started(descriptors: tuple[int, int], name: str) -> "subprocess.Popen[bytes]":
    arguments = ", ".join(map(repr, (*descriptors, name, os.getpid())))
    # The child finds the same modules, beginning with evenfeed's own.
    path = [place for place in sys.path if isinstance(place, str)]  # pyright: ignore[reportUnnecessaryIsInstance]
    program = f"import sys; sys.path[:] = {path!r}; from evenfeed.runtime.processes.child import main; main({arguments})"
    # A function that loads JAX must not take the parent's accelerator. One process shows progress, not all.
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", PROGRESS: "0"}
    with _no_interrupt():
        return subprocess.Popen(
            [*_interpreter(), "-c", program],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            env=environment,
        )


def _interpreter() -> list[Any]:
    """Return the command of this Python interpreter, with the flags of this process."""
    command = multiprocessing_spawn.get_command_line()
    return command[: command.index("-c")]


@contextmanager
def _no_interrupt() -> Generator[None]:
    """Block Ctrl-C while a process starts, which would print a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
