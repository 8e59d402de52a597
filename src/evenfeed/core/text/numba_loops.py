"""Compiles loops over records with Numba, if it is installed and the records are worth its import time."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Fewer records than this are read without Numba.
_FEWEST: Final = 256
# Numba options, the best first. The loops allocate nothing, so `_nrt=False` turns off reference counting, which
# took most of the time. The option is private to Numba and may disappear.
_OPTIONS: Final[tuple[dict[str, bool], ...]] = (
    {"cache": True, "_nrt": False},
    {"_nrt": False},
    {"cache": True},
    {},
)


def is_worth_it(rows: int) -> bool:
    """Return True if compiled loops should read this many records at a time."""
    return rows >= _FEWEST and is_installed()


def is_installed() -> bool:
    """Return True if Numba is installed, and supports this NumPy."""
    return _numba() is not None


def compiled(function: Function) -> Function:
    """Compile a function at its first call, and cache the result in a file for the next program.

    Numba notices changes only in the file that defines the function, so the functions it calls must be there too.
    """
    numba = _numba()
    assert numba is not None
    for options in _OPTIONS:
        try:
            return numba.njit(nogil=True, error_model="numpy", **options)(function)
        except (KeyError, RuntimeError):  # unknown option; no writable cache folder
            continue
    raise AssertionError("Numba accepts none of the option sets.")


@cache
def _numba() -> Any:
    try:
        return importlib.import_module("numba")
    except ImportError:  # not installed, or does not support this NumPy
        return None
