"""Builds the operators that run a plan: one per node, or one walk over rows where elements have positions.

Each family of nodes registers its operators (`runs`) and its rows (`addresses`) in its module in `operators/`.
`make_room` raises Python's recursion limit for deep plans.
"""

import sys
from typing import Final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.called_functions import functions_of
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.operators import (
    batching,
    buffering,
    checking,
    choosing,
    combining,
    elementwise,
    files,
    flattening,
    grouping,
    ordering,
    own_rows,
    packing,
    sources,
    windows,
)
from evenfeed.runtime.positions.indexing import indexed
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.read_size import ReadWide
from evenfeed.runtime.run import Run
from evenfeed.runtime.step import Step, operator_of

# Importing a module registers its operators.
FAMILIES: Final = (
    *(batching, buffering, checking, choosing, combining, elementwise, files),
    *(flattening, grouping, ordering, own_rows, packing, sources, windows),
)

# The most Python frames between an operator and its child, and the frames left for the rest of the program.
_FRAMES: Final = 16
_FREE: Final = 1000

# A deeper plan might overflow the C stack, which would kill the process.
_DEEPEST: Final = 2000


def make_room(plan: Node) -> None:
    """Raise Python's recursion limit as far as a deep plan needs it.

    Raises:
        InvalidArgumentError: The plan is too deep to be read.
    """
    if plan.depth > _DEEPEST:
        raise InvalidArgumentError(
            f"The dataset has a chain of {plan.depth} steps, but at most {_DEEPEST} are supported.",
            fix="if a loop adds these steps, do its work in one step.",
            origin=plan.origin,
        )
    needed = _FREE + _FRAMES * plan.depth
    if plan.depth > _FREE // _FRAMES and sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)


def build(node: Node, run: Run, epoch: int = 0) -> Operator:
    """Return a new operator that reads the elements of `node` from the start.

    Args:
        node: The plan to run.
        run: The random state of this pass.
        epoch: The round of a repeat above; a shuffle has a different order in each.
    """
    found = indexed(node, run, epoch)
    meter = run.meter
    if found is None:
        operator = operator_of(Step(node, run, epoch, build))
        return operator if meter is None else meter.measured(node, operator)
    walk = Walk(*found)
    operator = ReadWide(walk) if any(functions_of(part) for part in node.walk()) else walk
    return operator if meter is None else meter.walked(node, operator)
