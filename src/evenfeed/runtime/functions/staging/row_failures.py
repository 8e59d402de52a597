"""Why a row of a compiled function failed."""

from typing import Final

from evenfeed.core.errors import zero_divisor

# An index is out of range; an integer is divided by 0.
OUTSIDE: Final = 1
BY_ZERO: Final = 2


def failure(code: int) -> Exception:
    """Return the error of a row that failed."""
    outside = IndexError("out of bounds for the indexed tensor.")
    return zero_divisor() if code == BY_ZERO else outside
