"""Functions that cannot be compiled as a whole: they run as plain Python, with a word to the user."""

import warnings
from collections.abc import Callable
from typing import Any

from evenfeed.replicas import contexts
from evenfeed.replicas.staging import Unstaged


def drive(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function as plain Python; what `strategy.run` calls in it is compiled."""
    contexts.here.driving += 1
    try:
        return function(*args, **kwargs)
    finally:
        contexts.here.driving -= 1


def say_why(what: str, reason: Unstaged) -> None:
    """Warn that something is not compiled, at the line that is why; say nothing of iterators."""
    if reason.expected:
        return
    origin = reason.origin
    warnings.warn_explicit(
        f"{what}: {reason.why}",
        UserWarning,
        origin.filename if origin else "<unknown>",
        origin.line if origin else 0,
    )
