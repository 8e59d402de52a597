"""One element out for each that comes in."""

from dataclasses import dataclass
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.specs import TensorSpec
from evenfeed.plan.node import Node


@final
@dataclass(frozen=True)
class Enumerate(Node):
    """Puts a count before each element."""

    child: Node
    start: int

    @property
    def element_spec(self) -> Any:
        """A count, and the child's."""
        return TensorSpec([], dtypes.int64), self.child.element_spec

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size
