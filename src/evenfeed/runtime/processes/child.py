"""What runs in a process that maps elements: no JAX, and no more of evenfeed than a function needs."""

import os
import pickle
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import spawn
from traceback import TracebackException
from types import TracebackType
from typing import Any, Final, Protocol, final

from evenfeed.core.block import Block, Outcome, of_rows
from evenfeed.runtime.processes.portable import LOADING_MAIN
from evenfeed.runtime.processes.shared_memory import Counter, Link, counter_in, unpacked

_PARENT_SECONDS: Final = (
    1.0  # how often it is asked whether the parent lives, should nobody hang up
)


class _OneElement(Protocol):
    def one(self, parts: list[Any], number: int | None = None) -> list[Any]: ...


def main(connection: int, memory: int, name: str, parent: int) -> None:
    """Map what comes through a socket, until it is closed.

    Args:
        connection: The descriptor of the socket.
        memory: That of the memory in which the row at work is told.
        name: What errors call this process.
        parent: The process that started this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it hangs up
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    link = Link(socket.socket(fileno=connection))
    threading.Thread(target=_leave_with_parent, args=(link.connection, parent), daemon=True).start()
    name = f"{name} (pid {os.getpid()})"
    try:
        function, unpickler = _loaded(link)
        if function is not None:
            _work(link, function, unpickler, counter_in(memory), name)
    except (EOFError, ConnectionError):
        pass  # the parent hung up
    _leave(0)


def _leave_with_parent(connection: socket.socket, parent: int) -> None:
    """End the process when the parent hangs up or is gone, in the middle of a function if need be."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    while not poll.poll(1000 * _PARENT_SECONDS) and os.getppid() == parent:
        pass
    _leave(0)


def _leave(code: int) -> None:
    os._exit(code)  # what was printed is flushed; modules that are taken apart may wait for threads


def _loaded(link: Link) -> "tuple[_OneElement | None, Callable[..., pickle.Unpickler]]":
    """Return the function that is to be run, and how to read elements; tell the parent of a failure."""
    again, pickled = link.receive()
    program = _Program(again)
    unpickler = partial(_Unpickler, program)
    try:
        function = unpacked(pickled, unpickler)()
    except BaseException as error:  # noqa: BLE001 - a program may also exit when it is loaded again
        text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        link.send((text, program.is_loading, _traceback(error)))
        return None, unpickler
    link.send(None)
    return function, unpickler


def _work(
    link: Link,
    function: _OneElement,
    unpickler: Callable[..., pickle.Unpickler],
    progress: Counter,
    name: str,
) -> None:
    while True:
        block, number = link.receive(unpickler)
        begin = time.perf_counter()
        outcomes = _outcomes(function, block, number, progress, name)
        seconds = time.perf_counter() - begin
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        link.send((outcomes, seconds))


def _outcomes(
    function: _OneElement, block: Block, first: int, progress: Counter, name: str
) -> list[Outcome]:
    found: list[Outcome] = []
    rows: list[list[Any]] = []
    elements = block.cut_up()
    for index in range(block.length):
        progress[0] = index
        try:
            rows.append(function.one(elements.row(index), first + index))
        except Exception as error:  # noqa: BLE001 - the parent raises it
            if rows:
                found.append(of_rows(rows))
                rows = []
            found.append(portable_error(error, name))
    return [*found, of_rows(rows)] if rows else found


@final
class _Program:
    """The program that the parent runs, for functions and classes that are defined in it."""

    def __init__(self, again: dict[str, Any]) -> None:
        self._again = again
        self._is_loaded = False
        self.is_loading = False

    def load(self) -> None:
        """Run the program as a module, as Python's multiprocessing does."""
        if self._is_loaded:
            return
        self._is_loaded = self.is_loading = True
        token = LOADING_MAIN.set(True)
        spawn.prepare(self._again)
        LOADING_MAIN.reset(token)
        self.is_loading = False


@final
class _Unpickler(pickle.Unpickler):
    """Loads the program where something of it is needed, and not before: it may need JAX."""

    def __init__(self, program: _Program, file: Any, *, buffers: Any = ()) -> None:
        super().__init__(file, buffers=buffers)
        self._program = program

    def find_class(self, module_name: str, global_name: str) -> Any:
        if module_name == "__main__":
            self._program.load()
        return super().find_class(module_name, global_name)


def portable_error(error: Exception, name: str) -> Exception:
    """Return an exception that can be sent, with a note of what cannot: its traceback."""
    text = _traceback(error)
    sent = error if _survives(error) else _likeness(error)
    sent.add_note(f"in {name}:\n{text}")
    return sent


def _survives(error: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # noqa: BLE001 - classes of users' can raise anything here
        return False


def _likeness(error: Exception) -> Exception:
    """Return an exception of the nearest class that is Python's own, which says what `error` says."""
    text = f"{type(error).__qualname__}: {error}"
    for kind in type(error).__mro__:
        if kind.__module__ == "builtins" and issubclass(kind, Exception):
            try:
                like = kind(text)
            except TypeError:  # one that takes more than a text, such as UnicodeDecodeError
                continue
            for note in getattr(error, "__notes__", ()):
                like.add_note(note)
            return like
    return Exception(text)


def _traceback(error: BaseException) -> str:
    told = TracebackException(type(error), error, _users_part(error.__traceback__))
    told.__notes__ = None  # they are sent with the error itself
    return "".join(told.format()).rstrip()


def _users_part(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        if not str(traceback.tb_frame.f_globals.get("__name__")).startswith("evenfeed."):
            break
        traceback = traceback.tb_next
    return traceback
