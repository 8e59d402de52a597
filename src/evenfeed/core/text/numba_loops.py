"""Loops over records that Numba compiles, where it is installed: to load it takes longer than to read a few."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from evenfeed.core.lazy import Door

if TYPE_CHECKING:
    from evenfeed.core.text import text_kernels
else:
    text_kernels = Door("evenfeed.core.text.text_kernels")

__all__ = ["compiled", "is_worth_it", "text_kernels"]

Function = TypeVar("Function", bound=Callable[..., Any])

# Fewer records than this at a time are read without Numba.
_FEWEST: Final = 256
# What to ask of Numba, the best first. Nothing is allocated, so references need not be counted: that took
# most of the time. The option has no promise that it stays.
_OPTIONS: Final[tuple[dict[str, bool], ...]] = (
    {"cache": True, "_nrt": False},
    {"_nrt": False},
    {"cache": True},
    {},
)


def is_worth_it(rows: int) -> bool:
    """Tell whether so many records at a time are to be read by compiled loops."""
    return rows >= _FEWEST and _numba() is not None


def compiled(function: Function) -> Function:
    """Have a function compiled when it is first called, and kept in a file for the next program.

    Numba takes note of changes to the file that it is in, but not to others: what it calls must be there too.
    """
    numba = _numba()
    assert numba is not None
    for options in _OPTIONS:
        try:
            return numba.njit(nogil=True, error_model="numpy", **options)(function)
        except (KeyError, RuntimeError):  # no such option; no folder that can be written to
            continue
    raise AssertionError("Numba compiles nothing.")


@cache
def _numba() -> Any:
    try:
        return importlib.import_module("numba")
    except ImportError:  # it is not there, or does not know this NumPy
        return None
