"""Which elements come, and in what order."""

from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.plan.node import Node


@final
@dataclass(frozen=True)
class Repeat(Node):
    """Plays the child again and again; a negative count never ends."""

    child: Node
    count: int

    @property
    def element_spec(self) -> Any:
        """The child's."""
        return self.child.element_spec

    @property
    def size(self) -> int:
        """The child's size times the count; nothing stays nothing, however often."""
        if self.count == 0 or self.child.size == 0:
            return 0
        if self.count < 0 or self.child.size == INFINITE:
            return INFINITE
        return UNKNOWN if self.child.size == UNKNOWN else self.child.size * self.count
