"""Shows how far long work is, on stderr: a bar on a terminal, a line now and then elsewhere.

There is no thread: whoever works calls `add` for each Block of rows or piece of a file. An error or Ctrl-C passes
through. EVENFEED_PROGRESS=0 in the environment turns it off.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Self, final

from evenfeed.core.lazy import shutil

SETTING: Final = "EVENFEED_PROGRESS"
BYTES: Final = "B"
_QUIET_SECONDS: Final = 2.0  # nothing is shown before
_BAR_SECONDS: Final = 0.1  # between two pictures of a bar
_LINE_SECONDS: Final = 10.0  # between two lines
_BAR_WIDTH: Final = 24
_ERASE: Final = "\r\x1b[K"
_KILO: Final = 1000
_MINUTE: Final = 60


class _Thread(threading.local):
    """The work that is in progress in this thread."""

    work: "LongWork | None" = None


@final
class _Settings:
    """Whether this process shows progress: only worker 0 of a cluster does."""

    is_silent: bool = False


_here: Final = _Thread()
_settings: Final = _Settings()
_line: Final = threading.Lock()  # held by the work that is shown: there is one line


def silence() -> None:
    """Show nothing from now on: another process does the same work, and shows it."""
    _settings.is_silent = True


def advance(count: int) -> None:
    """Add to the work that is in progress in this thread, if there is any."""
    if _here.work is not None:
        _here.work.add(count)


@final
class LongWork:
    """Work that may take long. Use it in a `with` statement. Nothing is shown in the first two seconds.

    If several are in progress, the one that shows itself first keeps the line until it ends.

    Args:
        what: The work, as in "Indexing 3 files".
        total: How much there is to do; None if unknown.
        unit: What is counted: `BYTES`, or a noun in the plural.
    """

    def __init__(self, what: str, total: int | None, unit: str = BYTES) -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._done = 0
        self._is_shown = False
        self._around: LongWork | None = None
        self._started = time.monotonic()
        self._next = self._started + _QUIET_SECONDS

    def __enter__(self) -> Self:
        self._around, _here.work = _here.work, self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _here.work = self._around
        if not self._is_shown:
            return
        self._is_shown = False
        try:
            ending = "" if kind is not None else f"{self._what}: {self._summary()}\n"
            _write((_ERASE if _is_terminal() else "") + ending)
        finally:
            _line.release()

    def add(self, count: int) -> None:
        """Note that more is done."""
        self._done += count
        now = time.monotonic()
        if now >= self._next:
            self._show(now)

    def _show(self, now: float) -> None:
        is_terminal = _is_terminal()
        self._next = now + (_BAR_SECONDS if is_terminal else _LINE_SECONDS)
        if not self._is_shown and not self._takes_line():
            return
        text = f"{self._what}: {self._position(now, is_terminal=is_terminal)}"
        if is_terminal:
            width = shutil.get_terminal_size().columns
            _write(f"{_ERASE}{text[: width - 1]}")
        else:
            _write(f"{text}\n")

    def _takes_line(self) -> bool:
        if _settings.is_silent or os.environ.get(SETTING) == "0":
            return False
        self._is_shown = _line.acquire(blocking=False)
        return self._is_shown

    def _position(self, now: float, *, is_terminal: bool) -> str:
        if not self._total:
            return f"{_amount(self._done, self._unit)}, {_duration(now - self._started)}"
        part = min(1.0, self._done / self._total)
        full = round(part * _BAR_WIDTH)
        bar = f"[{'#' * full}{'.' * (_BAR_WIDTH - full)}] " if is_terminal else ""
        left = (now - self._started) * (1 - part) / part if part else None
        after = "" if left is None else f", {_duration(left)} left"
        return f"{bar}{part:4.0%} of {_amount(self._total, self._unit)}{after}"

    def _summary(self) -> str:
        return f"{_amount(self._done, self._unit)} in {_duration(time.monotonic() - self._started)}"


def _is_terminal() -> bool:
    with suppress(AttributeError, ValueError):  # no stderr, or a closed one
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return False


def _write(text: str) -> None:
    with suppress(AttributeError, OSError, ValueError):  # no stderr, or nobody reads it: go on
        sys.stderr.write(text)
        sys.stderr.flush()


def _amount(count: int, unit: str) -> str:
    if unit != BYTES:
        return f"{count:,} {unit}"
    size = float(count)
    for prefix in ("", "k", "M", "G"):
        if size < _KILO:
            return f"{size:.3g} {prefix}B"
        size /= _KILO
    return f"{size:.3g} TB"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
