"""Lets Ctrl-C come at one chosen place of a program, so that a test can try every place there is.

CPython looks for signals at certain instructions only: where a function begins, behind a call, where a loop jumps back.
A test that raised KeyboardInterrupt by itself would raise it at places where none can come. So this one counts
the instructions that are about to run, and at the one that was chosen sets the signal, in C and without running any Python
code: the interpreter then raises KeyboardInterrupt where it would have raised that of a user.
"""

import ctypes
import signal
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any

_TRACER = ctypes.PYFUNCTYPE(None, *[ctypes.py_object] * 3)
# Both are called by the interpreter as trace functions, and run no Python code.
_ignore: Any = _TRACER(("Py_IsInitialized", ctypes.pythonapi))
_set_signal: Any = _TRACER(("PyErr_SetInterrupt", ctypes.pythonapi))
# What it returns is the next trace function of the frame: it is called once only.
_set_signal.restype = partial(getattr, SimpleNamespace(then=_ignore), "then")


class Counting:
    """Counts the instructions that this thread runs, in functions that begin after it.

    Attributes:
        count: How many were about to run so far.
    """

    def __init__(self, at: int | None, files: Container[str] | None) -> None:
        self.count = 0
        self._at = at
        self._files = files

    def trace(self, frame: FrameType, event: str, arg: object) -> Any:
        """Count an instruction; behind the chosen one, let C code take over."""
        del arg
        if self._files is not None and frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.count += 1
            if self.count == self._at:
                _silence(frame)
                return _set_signal
        return self.trace


def _silence(frame: FrameType | None) -> None:
    """Let nothing be counted any more: this Python code would be what the signal interrupts."""
    sys.settrace(_ignore)
    while frame is not None:
        frame.f_trace, frame = _ignore, frame.f_back


@contextmanager
def interrupted(at: int | None = None, files: Container[str] | None = None) -> Iterator[Counting]:
    """Let Ctrl-C come when some instructions have run.

    Args:
        at: How many, at least 1; None only counts them.
        files: Whose instructions count; by default all.
    """
    counting = Counting(at, files)
    before = signal.signal(signal.SIGINT, signal.default_int_handler), sys.gettrace()
    sys.settrace(counting.trace)
    try:
        yield counting
    finally:
        sys.settrace(before[1])
        signal.signal(signal.SIGINT, before[0])
