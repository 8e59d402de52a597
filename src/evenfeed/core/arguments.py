"""Checks of the arguments that users pass."""

import operator
from typing import Any

import numpy as np

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


def whole_number(value: Any, name: str) -> int:
    """Return `value` as an int of 64 bits; an error that names the argument where it is none."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            described(
                f"{name} must be a whole number, but got {shortened(value)} "
                f"of type {type(value).__name__}.",
                fix=f"pass an int as {name}.",
            )
        ) from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(described(f"{name} does not fit into 64 bits: {shortened(value)}."))
    return number


def yes_or_no(value: Any, name: str) -> bool:
    """Return `value` as a bool; a TypeError where it is none, for `bool("no")` is true."""
    if type(value) in (bool, np.bool_):
        return bool(value)
    raise TypeError(
        described(
            f"{name} must be True or False, but got {shortened(value)}.",
            fix=f"pass {name}=True or {name}=False.",
        )
    )


def seconds_of(value: Any, name: str) -> float:
    """Return `value` as a time in seconds, 0 or more."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if isinstance(value, bool | str) or not 0 <= seconds < float("inf"):
        raise ValueError(
            described(
                f"{name} must be a number of seconds, but got {shortened(value)}.",
                fix=f"pass {name}=1.0 for one second.",
            )
        )
    return seconds
