"""What tests need and no plan has: a node of unknown size, and operators that are watched."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.specs import UNKNOWN, TensorSpec
from evenfeed.plan.node import Node
from evenfeed.plan.sources import Range
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.operators.sources import Arrays, Numbers
from evenfeed.runtime.positions.orders import Forward
from evenfeed.runtime.positions.rows import Walk


@dataclass(frozen=True)
class UnknownSize(Node):
    """A node whose number of elements is not known before it is read."""

    element_spec = TensorSpec([], "int64")
    size = UNKNOWN


def count(*args: int) -> Walk:
    """Return an operator that counts like Python's range."""
    rows = Numbers(Range(*(args if len(args) > 1 else (0, *args))))
    return Walk(rows, Forward(rows.size))


def slices(*columns: Any) -> Walk:
    """Return an operator that reads the rows of arrays."""
    rows = Arrays(columns, len(columns[0]))
    return Walk(rows, Forward(rows.size))


class Watched(Operator):
    """Gives blocks of rows one at a time, raises what is an error among them, and notes what it was asked."""

    def __init__(self, *script: Any) -> None:
        self.script = script
        self.next = 0
        self.asked: list[int] = []
        self.closed = False

    def read(self, most: int) -> Block | None:
        self.asked.append(most)
        if self.next == len(self.script):
            return None
        self.next += 1
        row = self.script[self.next - 1]
        if isinstance(row, Exception):
            raise row
        return Block((np.array([row]), None), 1)

    def state(self) -> Any:
        return self.next

    def restore(self, state: Any) -> None:
        self.next = state

    def close(self) -> None:
        self.closed = True


def read_all(operator: Operator, most: int, blocks: int = 20) -> list[Any]:
    """Return the first columns of some blocks, the class of an error in its place, None at the end."""
    found: list[Any] = []
    while len(found) < blocks and (not found or found[-1] is not None):
        try:
            block = operator.read(most)
        except ValueError as error:
            found.append(type(error))
            continue
        column = None if block is None else block.columns[0]
        found.append([x.tolist() for x in column] if isinstance(column, list) else column)
        found[-1] = column.tolist() if isinstance(column, np.ndarray) else found[-1]
    return found
