"""One element out for each that comes in."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, cast, final

from evenfeed.core import dtypes
from evenfeed.core.specs import TensorSpec
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Passes


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


@final
@dataclass(frozen=True)
class WithKeys(Node):
    """Puts random bits before each element, which follow from the seed, the pass and its position."""

    child: Node
    seed: tuple[int, ...]
    _: KW_ONLY
    reshuffle: bool = True
    passes: Passes = field(default_factory=Passes, compare=False, repr=False)

    @property
    def element_spec(self) -> Any:
        """Two words, and the child's; a tuple stays flat, so that a function gets its parts one by one."""
        spec = self.child.element_spec
        parts = cast("tuple[Any, ...]", spec) if type(spec) is tuple else (spec,)
        return TensorSpec([2], dtypes.uint32), *parts

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size
