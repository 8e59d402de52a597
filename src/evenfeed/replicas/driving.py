"""Functions that cannot be compiled as a whole: they run as plain Python, with a word to the user."""

import warnings
from collections.abc import Callable
from typing import Any

from evenfeed.core.errors import OutOfRangeError
from evenfeed.replicas import contexts
from evenfeed.replicas.staging import Unstaged


def drive(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function as plain Python; what `strategy.run` calls in it is compiled.

    Raises:
        OutOfRangeError: The data has ended at a `next` in the function. A StopIteration that left it would
            end a loop around the call in silence.
    """
    contexts.here.driving += 1
    try:
        return function(*args, **kwargs)
    except StopIteration:
        raise OutOfRangeError(
            "The data has ended.",
            fix="loop over the dataset inside the function, or ask get_next_as_optional().has_value().",
        ) from None
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
