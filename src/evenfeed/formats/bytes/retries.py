"""Calls to remote filesystems: repeated if they fail, and given up if they stall.

Reading again is safe, so a failure of the network or the storage need not end the program. Every call runs in a
thread: a stalled one ends after a timeout, and never blocks Ctrl-C or the exit of the program.
"""

import os
import threading
import time
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final, TypeVar, final

from evenfeed.core.concurrency.threads import ThreadPool, background
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.errors import (
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    EvenfeedError,
    InvalidArgumentError,
    UnavailableError,
)
from evenfeed.formats.bytes.open_files import TOO_MANY

READ_ATTEMPTS: Final = "EVENFEED_READ_ATTEMPTS"
READ_SECONDS: Final = "EVENFEED_READ_SECONDS"
_ATTEMPTS: Final = 5
_SECONDS: Final = 30.0  # for one attempt
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 10.0
_LOOK_SECONDS: Final = 0.25  # how often a waiting thread checks whether the program is exiting
_THREADS: Final = 64  # most wait for the network, some for a stalled source
# Trying again does not help.
_FINAL: Final = (
    EvenfeedError,
    FileNotFoundError,
    FileExistsError,
    NotADirectoryError,
    IsADirectoryError,
    PermissionError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    NotImplementedError,
    TypeError,
    ValueError,
)
_T = TypeVar("_T")

_JITTER: Final = Random()  # an instance: the state of the module belongs to the user


@final
class _StallError(Exception):
    """A call did not return in time."""


@final
class MissingBytesError(OSError):
    """A file ended before its size."""


@cache
def _threads() -> ThreadPool:
    return ThreadPool(_THREADS, "evenfeed-remote")


@cache
def _callers() -> ThreadPool:
    # Apart from those above, for which these wait.
    return ThreadPool(_THREADS, "evenfeed-calls")


def interruptible(call: Callable[[], _T]) -> _T:
    """Call a function in a thread: Ctrl-C interrupts the wait, even if the call waits in compiled code."""
    return _waited(_callers().submit(call), None)


def retried(path: str, place: int | None, call: Callable[[], _T]) -> _T:
    """Call a function that only reads, and call it again after a pause if it fails or stalls.

    Args:
        path: The file, for errors.
        place: The byte that is read, for errors; None if the call is about the whole file.
        call: The function. It runs in a thread, and must be safe to call again while an earlier call still runs.

    Raises:
        UnavailableError: All attempts failed.
        DeadlineExceededError: All attempts failed, and the last one stalled.
        DataLossError: The file has fewer bytes than its size says.
    """
    attempts, seconds = _limit(READ_ATTEMPTS, int, _ATTEMPTS), _limit(READ_SECONDS, float, _SECONDS)
    began, pause = time.monotonic(), _FIRST_PAUSE
    for attempt in range(1, attempts + 1):
        try:
            return _waited(_threads().submit(call), seconds)
        except _FINAL:
            raise
        except Exception as error:
            if getattr(error, "errno", None) in TOO_MANY:
                raise
            if attempt == attempts:
                spent = time.monotonic() - began
                raise _given_up(path, place, error, f"{attempts} in {spent:.1f} s") from error
        _rest(pause * _JITTER.uniform(0.5, 1.0))
        pause = min(2 * pause, _LONGEST_PAUSE)
    raise AssertionError(attempts)


def _limit(name: str, kind: Callable[[str], _T], default: _T) -> _T:
    text = os.environ.get(name, str(default))
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not value > 0:  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]
        raise InvalidArgumentError(
            f"{name} must be a positive number, but got {text!r}.", fix=f"export {name}={default}."
        )
    return value


def _waited(pending: Pending[_T], seconds: float | None) -> _T:
    end = float("inf") if seconds is None else time.monotonic() + seconds
    while True:
        try:
            return pending.result(max(0.0, min(_LOOK_SECONDS, end - time.monotonic())))
        except TimeoutError:
            if pending.done():
                return pending.result()  # or raises the TimeoutError of the call
        _raise_at_exit()
        if time.monotonic() >= end:
            pending.cancel()
            raise _StallError(f"no answer within {seconds:g} seconds")


def _rest(seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK_SECONDS))
        _raise_at_exit()


def _raise_at_exit() -> None:
    """End a thread that reads ahead when the program exits."""
    if background.are_ending and threading.current_thread() is not threading.main_thread():
        raise CancelledError("The program ended while a file was read.")


def _given_up(path: str, place: int | None, error: Exception, attempts: str) -> EvenfeedError:
    where = "" if place is None else f" at byte {place}"
    reason = str(error) or type(error).__name__
    what = f"{path} cannot be read{where}: {reason} (attempts: {attempts})."
    if isinstance(error, MissingBytesError):
        return DataLossError(what, fix="write the file again.").in_file(path, place)
    kind = DeadlineExceededError if isinstance(error, _StallError) else UnavailableError
    fix = f"check the network and the storage, or try longer with {READ_ATTEMPTS}=10 or {READ_SECONDS}=120."
    return kind(what, fix=fix).in_file(path, place)
