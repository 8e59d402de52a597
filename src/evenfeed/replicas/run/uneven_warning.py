"""Tells a user whose every batch is uneven which batch size would be one program.

A partial last batch is no reason to say so: a function that has also run on even parts has none.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, final
from weakref import WeakSet

from evenfeed.core.callsite import where_called

_MANY: Final = 3

# The code of the functions that were compiled for even parts.
_even: Final[WeakSet[Any]] = WeakSet()


def note_even(function: Callable[..., Any]) -> None:
    """Remember that a function also runs on even parts."""
    _even.add(_code(function))


@final
class Watch:
    """Counts the steps of a function that runs on uneven parts.

    Args:
        function: The user's.
        lengths: How many rows each replica gets; none where the parts differ in something else.
    """

    def __init__(self, function: Callable[..., Any], lengths: Sequence[int]) -> None:
        self._code = _code(function)
        self._lengths = list(lengths)
        self._origin = where_called()
        self._left = _MANY

    def step(self) -> None:
        """Count one, and warn, once, where the function has run on nothing else."""
        self._left -= 1
        if self._left == 0 and self._lengths and self._code not in _even:
            warnings.warn_explicit(
                self._advice(),
                UserWarning,
                self._origin.filename if self._origin else "<unknown>",
                self._origin.line if self._origin else 0,
            )

    def _advice(self) -> str:
        count = len(self._lengths)
        below = sum(self._lengths) // count * count
        sizes = f"{below} or {below + count}" if below else f"{count}"
        return (
            f"The replicas get {self._lengths} rows at every step: parts that differ are no one program, and run "
            f"slower. A batch size of {sizes} can be divided evenly among {count} replicas."
        )


def _code(function: Callable[..., Any]) -> Any:
    """Return what is the same for a function that is defined anew at each step."""
    return getattr(function, "__code__", None) or function
