"""The main loop of a process that maps elements.

Imports no JAX, and only the parts of evenfeed that the function needs.
"""

import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing import spawn
from traceback import TracebackException
from types import TracebackType
from typing import Any, Final, Protocol, final

from evenfeed.core.block import Block, Column, Outcome
from evenfeed.core.lazy import cloudpickle
from evenfeed.core.ragged import ragged_columns
from evenfeed.runtime.operator import FailedRow
from evenfeed.runtime.processes.portable import LOADING_MAIN
from evenfeed.runtime.processes.shared_memory import (
    CONNECTION_CLOSED,
    Counter,
    Link,
    counter_in,
    unpacked,
)

# How often to check that the parent is alive, in case the socket is not closed.
_PARENT_SECONDS: Final = 1.0


class _Elements(Protocol):
    def rows(
        self, block: Block, first: int, passing: Callable[[Iterable[Any]], Iterable[Any]]
    ) -> Block: ...


def main(connection: int, memory: int, name: str, parent: int) -> None:
    """Map the elements that arrive through a socket, until it is closed.

    Args:
        connection: The file descriptor of the socket.
        memory: The file descriptor of the shared memory that holds the index of the current row.
        name: The name of this process in errors.
        parent: The pid of the process that started this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and hangs up
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    link = Link(socket.socket(fileno=connection))
    threading.Thread(target=_exit_with_parent, args=(link.connection, parent), daemon=True).start()
    name = f"{name} (pid {os.getpid()})"
    try:
        function, unpickler = _loaded(link)
        if function is not None:
            _work(link, function, unpickler, counter_in(memory), name)
    except (EOFError, ConnectionError):
        pass  # the parent hung up
    _exit(0)


def _exit_with_parent(connection: socket.socket, parent: int) -> None:
    """End the process when the parent hangs up or dies, even in the middle of a function call."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    while not (events := poll.poll(1000 * _PARENT_SECONDS)) and os.getppid() == parent:
        pass
    is_closed_here = any(event & select.POLLNVAL for _, event in events)
    _exit(CONNECTION_CLOSED if is_closed_here else 0)


def _exit(code: int) -> None:
    os._exit(code)  # output is flushed already, and interpreter shutdown may wait for threads


def _loaded(link: Link) -> "tuple[_Elements | None, Callable[..., pickle.Unpickler]]":
    """Return the function to run and the unpickler for elements. Report a failure to the parent."""
    preparation, pickled = link.receive()
    program = _Program(preparation)
    unpickler = partial(_Unpickler, program)
    try:
        function = unpacked(pickled, unpickler)()
    except BaseException as error:  # noqa: BLE001 - a program may call sys.exit when it is loaded again
        text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        link.send((text, program.is_loading, _traceback(error)))
        return None, unpickler
    link.send(None)
    return function, unpickler


def _work(
    link: Link,
    function: _Elements,
    unpickler: Callable[..., pickle.Unpickler],
    progress: Counter,
    name: str,
) -> None:
    while True:
        block, number = link.receive(unpickler)
        start, computed = time.perf_counter(), time.process_time()
        outcomes = _outcomes(link, function, block, number, progress=progress, name=name)
        seconds = time.perf_counter() - start
        waited = max(0.0, seconds - (time.process_time() - computed))
        for stream in filter(None, (sys.stdout, sys.stderr)):  # a daemon has none
            stream.flush()
        link.send((outcomes, seconds, waited))


def _outcomes(  # noqa: PLR0913 - keyword-only arguments
    link: Link, function: _Elements, block: Block, first: int, *, progress: Counter, name: str
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    start = 0
    while start < block.length:
        rest = block.cut(start, block.length)
        shown = partial(_shown, start=start, link=link, progress=progress)
        try:
            outcomes.append(_sendable(function.rows(rest, first + start, shown)))
        except FailedRow as failed:  # the parent raises its error
            _check_open(link)
            if failed.before is not None:
                outcomes.append(_sendable(failed.before))
            outcomes.append(portable_error(failed.error, name))
            start += failed.index + 1
        else:
            break
    return outcomes


def _shown(elements: Iterable[Any], *, start: int, link: Link, progress: Counter) -> Iterator[Any]:
    """Yield elements. The parent sees the index of each until the next is taken."""
    for index, element in enumerate(elements, start):
        progress[0] = index
        yield element
        _check_open(link)


def _check_open(link: Link) -> None:
    """Exit if user code has closed the connection: now, while `progress` shows the element that closed it."""
    if not link.is_open():
        _exit(CONNECTION_CLOSED)


def _sendable(block: Block) -> Block:
    """Return results as they are sent. Vectors of different lengths become one array: to send each takes longer."""
    return Block(tuple(map(_in_one_array, block.columns)), block.length)


def _in_one_array(column: Column) -> Column:
    joined = ragged_columns.of_vectors(column) if isinstance(column, list) else None
    return column if joined is None else joined


@final
class _Program:
    """The parent's main program, loaded when it defines the function or a class of an element."""

    def __init__(self, preparation: dict[str, Any]) -> None:
        self._preparation = preparation
        self._is_loaded = False
        self.is_loading = False

    def load(self) -> None:
        """Run the program as a module, as multiprocessing does."""
        if self._is_loaded:
            return
        self._is_loaded = self.is_loading = True
        token = LOADING_MAIN.set(True)
        spawn.prepare(self._preparation)
        LOADING_MAIN.reset(token)
        self.is_loading = False


@final
class _Unpickler(pickle.Unpickler):
    """Loads the main program only when an object needs it, because the program may import JAX."""

    def __init__(self, program: _Program, file: Any, *, buffers: Any = ()) -> None:
        super().__init__(file, buffers=buffers)
        self._program = program

    def find_class(self, module_name: str, global_name: str) -> Any:
        if module_name == "__main__":
            self._program.load()
        return super().find_class(module_name, global_name)


def portable_error(error: Exception, name: str) -> Exception:
    """Return an exception that can be pickled, with its traceback as a note."""
    text = _traceback(error)
    sent = error if _survives(error, pickle) else None
    if sent is None and type(error).__module__ == "__main__" and _survives(error, cloudpickle):
        sent = ByValue(error)  # its class came by value, too, and the parent knows it again
    sent = sent or _builtin_copy(error)
    sent.add_note(f"in {name}:\n{text}")
    return sent


def _survives(error: Exception, by: Any) -> bool:
    try:
        return type(by.loads(by.dumps(error))) is type(error)
    except Exception:  # noqa: BLE001 - user classes can raise anything here
        return False


@final
class ByValue(Exception):  # noqa: N818 - only while it is sent
    """An exception that is pickled with its class. The other process gets the exception itself."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self._error = error

    def add_note(self, note: str) -> None:
        """Add a note to the exception."""
        self._error.add_note(note)

    def __reduce__(self) -> tuple[Any, ...]:
        return cloudpickle.loads, (cloudpickle.dumps(self._error),)  # pyright: ignore[reportUnknownMemberType]


def _builtin_copy(error: Exception) -> Exception:
    """Return an exception of the nearest builtin base class, with the message and notes of `error`."""
    text = f"{type(error).__qualname__}: {error}"
    for kind in type(error).__mro__:
        if kind.__module__ == "builtins" and issubclass(kind, Exception):
            try:
                copy = kind(text)
            except TypeError:  # a class that takes more than a message, such as UnicodeDecodeError
                continue
            for note in getattr(error, "__notes__", ()):
                copy.add_note(note)
            return copy
    return Exception(text)


def _traceback(error: BaseException) -> str:
    shown = TracebackException(type(error), error, _user_frames(error.__traceback__))
    shown.__notes__ = None  # the error itself carries them
    return "".join(shown.format()).rstrip()


def _user_frames(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        if not str(traceback.tb_frame.f_globals.get("__name__")).startswith("evenfeed."):
            break
        traceback = traceback.tb_next
    return traceback
