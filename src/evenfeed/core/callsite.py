"""Finds the line of user code that made a call, for error messages."""

import inspect
import os
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")

# A program that ships with evenfeed for users to copy: its lines are user code.
_DEMO = os.path.join(_PACKAGE, "demo", "")

_OURS = __name__.partition(".")[0]

# A library may have called back between user code and evenfeed. Its lines do not help the user.
_LIBRARIES = sys.stdlib_module_names | {
    "jax",
    "jaxlib",
    "keras",
    "numpy",
    "flax",
    "optax",
    "equinox",
}


class Origin(NamedTuple):
    """A line of user code."""

    filename: str
    line: int

    def __str__(self) -> str:
        return f"{_shown(self.filename)}:{self.line}"


def where_called() -> Origin | None:
    """Return the innermost line on the stack that is neither in evenfeed nor in a library.

    If there is no user code on the stack (a library started the thread), returns the innermost line outside evenfeed,
    or None.
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


def calling_package() -> str:
    """Return the top package of the code that called the function which asks."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = None if frame is None else frame.f_back
    return "" if frame is None else _top_package(frame)


def called_function() -> str:
    """Return the name of the function of evenfeed that user code has called: the outermost one on the stack."""
    found, frame = _OURS, inspect.currentframe()
    while frame is not None and (_is_ours(frame) or _is_library(frame)):
        # Users do not know the inner functions of decorators.
        if _is_ours(frame) and "<" not in frame.f_code.co_qualname:
            found = _name_of(frame)
        frame = frame.f_back
    return found.removesuffix(".__init__").removesuffix(".__post_init__")


def _name_of(frame: FrameType) -> str:
    """Return the name of a function, or of a method with the class that it is called on."""
    of_class, _, name = frame.f_code.co_qualname.rpartition(".")
    if not of_class:
        return name
    owner: Any = frame.f_locals.get("cls")
    this: Any = frame.f_locals.get("self")
    return f"{(owner or this.__class__).__name__}.{name}"


def line_in(frame: FrameType) -> Origin | None:
    """Return the innermost line of user code at or above a frame; None if there is none."""
    inner: FrameType | None = frame
    while inner is not None:
        if not _is_ours(inner) and not _is_library(inner):
            return Origin(inner.f_code.co_filename, inner.f_lineno)
        inner = inner.f_back
    return None


def where_raised(error: BaseException) -> Origin | None:
    """Return the innermost line of user code in an exception's traceback; None if there is none."""
    found: Origin | None = None
    step = error.__traceback__
    while step is not None:
        if not _is_ours(step.tb_frame) and not _is_library(step.tb_frame):
            found = Origin(step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return found


def _is_ours(frame: FrameType) -> bool:
    filename = frame.f_code.co_filename
    # Methods that dataclasses generates have no file, but run with the globals of their module.
    generated = filename == "<string>" and _top_package(frame) == _OURS
    return generated or (filename.startswith(_PACKAGE) and not filename.startswith(_DEMO))


def _is_library(frame: FrameType) -> bool:
    # Typed-in programs (<stdin>, <doctest …>) run with the globals of the module that reads them.
    if frame.f_code.co_filename.startswith("<") and not _is_frozen(frame.f_code):
        return False
    return _top_package(frame) in _LIBRARIES


def _top_package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_frozen(code: CodeType) -> bool:
    return code.co_filename.startswith("<frozen ")


def _shown(filename: str) -> str:
    """Make a path inside the working directory relative. Leaves `<stdin>` and other paths unchanged."""
    if filename.startswith("<"):
        return filename
    try:
        relative = os.path.relpath(filename)
    except (OSError, ValueError):  # the working directory is gone, or on another drive
        return filename
    return filename if relative.startswith(os.pardir) else relative
