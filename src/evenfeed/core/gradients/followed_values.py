"""Which values an open tape follows, so that no function cuts a gradient off silently.

A function that computes on the host leaves nothing for a tape to record. If TensorFlow has a gradient for it, a value that
a tape follows is an error here, or takes another way. What users ask for (`numpy()`, `float`, `print`) ends the
gradient, as in TensorFlow.
"""

import threading
from collections.abc import Sequence
from typing import Any, Protocol, cast

from evenfeed.core.callsite import called_function
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described


class Follower(Protocol):
    """A tape that is open."""

    def followed(self, value: Any) -> Any:
        """Return the array to compute with if the tape follows a tensor or variable; else None."""
        ...


class _Thread(threading.local):
    """The tapes that are open in a thread."""

    def __init__(self) -> None:
        self.tapes: list[Follower] = []


here = _Thread()


def followed(value: Any) -> Any:
    """Return the array to compute with if an open tape follows a tensor or variable; else None."""
    for tape in here.tapes:
        found = tape.followed(value)
        if found is not None:
            return found
    return None


def host_array(value: object, dtype: DType | None = None) -> Array:
    """Return a value as a NumPy array, for a function that has no gradient here but one in TensorFlow.

    Raises:
        LookupError: An open tape follows the value.
    """
    if here.tapes:
        check_not_followed(value)
    return to_array(value, dtype)


def check_not_followed(*values: object, function: str | None = None) -> None:
    """Raise LookupError, as TensorFlow does for an operation without a gradient, if a tape follows a value.

    Args:
        values: The values, or lists of them.
        function: The name for the error; by default that of the function that user code has called.
    """
    if not here.tapes:
        return
    for value in values:
        listed = isinstance(value, (list, tuple))
        parts = cast("Sequence[object]", value) if listed else (value,)
        if any(followed(part) is not None for part in parts):
            raise no_gradient(function)


def no_gradient(function: str | None = None) -> LookupError:
    """Return the error for a function that would end a gradient."""
    return LookupError(
        described(
            f"{function or called_function()} computes on the host and has no gradient, but a tape follows its argument: the "
            "gradient would be missing.",
            fix="write it with functions on dense tensors, such as evenfeed.math.unsorted_segment_sum or "
            "evenfeed.gather; or pass evenfeed.stop_gradient(x) if no gradient is wanted.",
        )
    )
