"""Warns of a function that is traced again and again."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from evenfeed.core.callsite import where_called
from evenfeed.core.lazy import logging

_MANY: Final = 5
_WITHIN: Final = 10
_MOST_WARNINGS: Final = 2


@final
class Retraces:
    """Counts the calls of a function, and in which of them it was traced.

    Attributes:
        calls: How many there were.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._at: deque[int] = deque(maxlen=_MANY)
        self._warnings = 0
        self.calls = 0

    def traced(self) -> None:
        """Note a call with a trace; warn where most of the last ones were such."""
        self.calls += 1
        self._at.append(self.calls)
        since = self.calls - self._at[0] + 1
        if len(self._at) < _MANY or since > _WITHIN or self._warnings == _MOST_WARNINGS:
            return
        self._warnings += 1
        # Logged, as TensorFlow does: a program that is traced often is slow, but right.
        logging.getLogger("evenfeed").warning(
            "%d of the last %d calls of %s traced and compiled it again (%s). That takes time: define the "
            "function outside of the loop, pass tensors instead of Python numbers, and batches of one shape "
            "(drop_remainder=True).",
            _MANY,
            since,
            self._name,
            where_called(),
        )


# By the code: a function that is defined again and again in a loop is one to its user.
_of_code: "WeakKeyDictionary[Any, Retraces]" = WeakKeyDictionary()


def retraces_of(function: Callable[..., Any], name: str) -> Retraces:
    """Return the count for a function, one for all that have the same code."""
    code = getattr(function, "__code__", None)
    if code is None:
        return Retraces(name)
    return _of_code.setdefault(code, Retraces(name))
