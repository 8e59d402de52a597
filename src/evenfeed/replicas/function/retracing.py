"""Warns about a function that is retraced too often."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from evenfeed.core.callsite import where_called
from evenfeed.core.lazy import logging

_TRACES: Final = 5
_CALLS: Final = 10
_MAX_WARNINGS: Final = 2


@final
class Retraces:
    """Counts the calls of a function, and in which of them it was traced.

    Attributes:
        calls: The number of calls.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._traced_calls: deque[int] = deque(maxlen=_TRACES)
        self._warnings = 0
        self.calls = 0

    def traced(self) -> None:
        """Count a call that traced the function. Warn if most of the recent calls did."""
        self.calls += 1
        self._traced_calls.append(self.calls)
        since = self.calls - self._traced_calls[0] + 1
        if len(self._traced_calls) < _TRACES or since > _CALLS or self._warnings == _MAX_WARNINGS:
            return
        self._warnings += 1
        # Logged, as in TensorFlow: retracing is slow, but correct.
        logging.getLogger("evenfeed").warning(
            "%d of the last %d calls of %s retraced and recompiled it (%s), which is slow: define the "
            "function outside of the loop, pass tensors instead of Python numbers, and use batches of one shape "
            "(drop_remainder=True).",
            _TRACES,
            since,
            self._name,
            where_called(),
        )


# By code object: a function that a loop redefines is one function to its user.
_by_code: "WeakKeyDictionary[Any, Retraces]" = WeakKeyDictionary()


def retraces_of(function: Callable[..., Any], name: str) -> Retraces:
    """Return the count for a function, shared by all functions with the same code."""
    code = getattr(function, "__code__", None)
    if code is None:
        return Retraces(name)
    return _by_code.setdefault(code, Retraces(name))
