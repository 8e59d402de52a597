"""Hands out the elements of a plan one by one."""

from threading import Lock
from typing import Any, final

from evenfeed.core.iteration import NextElement
from evenfeed.core.structure import DATA, packer
from evenfeed.plan.node import Node
from evenfeed.runtime.block import Block
from evenfeed.runtime.build import build

# Enough that the work per Block is small against the work per element, little enough to stay in cache.
_BLOCK_BYTES = 1 << 20


@final
class ElementIterator(NextElement):
    """The elements of a dataset, one at a time.

    Reads grow 1, 2, 4, … up to a byte budget, so that the first element comes as soon as one element
    can, and a long run costs little more than its columns.
    """

    def __init__(self, plan: Node) -> None:
        self._spec = plan.element_spec
        self._pack = packer(self._spec, DATA)
        self._operator = build(plan)
        self._block: Block | None = None
        self._next_row = 0
        self._ask = 1
        self._lock = Lock()

    @property
    def element_spec(self) -> Any:
        """The specs of an element's parts."""
        return self._spec

    def __next__(self) -> Any:
        with self._lock:  # several threads may share an iterator: each element goes to one of them
            block = self._block
            if block is None or self._next_row == block.length:
                block = self._read()
            row = self._next_row
            self._next_row = row + 1
        return self._pack(block.row(row))

    def _read(self) -> Block:
        self._block = block = self._operator.read(self._ask)
        if block is None:
            raise StopIteration
        self._next_row = 0
        most = max(1, _BLOCK_BYTES // max(1, block.bytes_per_row))
        self._ask = min(2 * self._ask, most)
        return block
