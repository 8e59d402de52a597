"""Finds the user's own line, so that an error can say where it was asked for."""

import inspect
import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")

_OURS = __name__.partition(".")[0]

# Between the user and us there may be a library that called back: those lines help nobody.
_LIBRARIES = sys.stdlib_module_names | {"jax", "jaxlib", "numpy", "flax", "optax", "equinox"}


class Origin(NamedTuple):
    """A line of the user's program."""

    filename: str
    line: int

    def __str__(self) -> str:
        return f"{_shown(self.filename)}:{self.line}"


def where_called() -> Origin | None:
    """Return the innermost line that is neither evenfeed's nor a library's.

    Where no line of the user's is on the stack (a thread that a library started), the innermost
    line outside evenfeed is the best that can be said; None where even that is missing.
    """
    nearest: Origin | None = None
    frame = inspect.currentframe()
    while frame is not None:
        if not _is_ours(frame):
            here = Origin(frame.f_code.co_filename, frame.f_lineno)
            if not _is_library(frame):
                return here
            nearest = nearest or here
        frame = frame.f_back
    return nearest


def line_in(frame: FrameType) -> Origin | None:
    """Return the innermost of the user's lines that a frame runs for; None where there is none."""
    inner: FrameType | None = frame
    while inner is not None:
        if not _is_ours(inner) and not _is_library(inner):
            return Origin(inner.f_code.co_filename, inner.f_lineno)
        inner = inner.f_back
    return None


def where_raised(error: BaseException) -> Origin | None:
    """Return the innermost line of the user's that an exception came through; None where there is none."""
    found: Origin | None = None
    step = error.__traceback__
    while step is not None:
        if not _is_ours(step.tb_frame) and not _is_library(step.tb_frame):
            found = Origin(step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return found


def _is_ours(frame: FrameType) -> bool:
    filename = frame.f_code.co_filename
    # The methods that dataclasses writes for a node have no file, but run with its module's names.
    generated = filename == "<string>" and _top_package(frame) == _OURS
    return generated or filename.startswith(_PACKAGE)


def _is_library(frame: FrameType) -> bool:
    # Typed-in programs (<stdin>, <doctest …>) run with the names of the module that reads them.
    if frame.f_code.co_filename.startswith("<") and not _is_frozen(frame.f_code):
        return False
    return _top_package(frame) in _LIBRARIES


def _top_package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_frozen(code: CodeType) -> bool:
    return code.co_filename.startswith("<frozen ")


def _shown(filename: str) -> str:
    """Shorten a path below the working directory; leave `<stdin>` and distant files as they are."""
    if filename.startswith("<"):
        return filename
    try:
        relative = os.path.relpath(filename)
    except (OSError, ValueError):  # the working directory is gone, or on another drive
        return filename
    return filename if relative.startswith(os.pardir) else relative
