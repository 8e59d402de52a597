"""Makes room on Python's stack for plans in which many steps read one another."""

import sys
from typing import Final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.node import Node

# Calls between an operator and the one that it reads, at most; and what a program needs besides.
_FRAMES: Final = 16
_FREE: Final = 1000

# Deeper plans might not fit on the stack of the operating system, which would end the process.
_DEEPEST: Final = 2000


def make_room(plan: Node) -> None:
    """Raise Python's recursion limit as far as a plan needs it.

    Raises:
        InvalidArgumentError: The plan is too deep to be read.
    """
    if plan.depth > _DEEPEST:
        raise InvalidArgumentError(
            f"{plan.depth} steps read one another, but at most {_DEEPEST} can.",
            fix="do in one step what a loop adds step by step.",
            origin=plan.origin,
        )
    needed = _FREE + _FRAMES * plan.depth
    if plan.depth > _FREE // _FRAMES and sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)
