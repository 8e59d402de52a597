"""Elements that a user's function makes datasets of."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, final

from evenfeed.core.cardinality import UNKNOWN
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.function import UserFunction
from evenfeed.plan.node import Node


class MakesDatasets(UserFunction, Protocol):
    """A user's function that makes a dataset of an element."""

    @property
    def stand_in(self) -> Node:
        """The plan that it makes of an element without a value: what all that it makes have in common."""
        ...


@dataclass(frozen=True)
class _Flattened(Node):
    """The elements of the datasets that a function makes of the child's elements."""

    child: Node
    function: MakesDatasets

    @property
    def element_spec(self) -> Any:
        """What the elements of the inner datasets have in common."""
        return self.function.output_spec

    @property
    def size(self) -> int:
        """Unknown: it hangs on what the function makes."""
        return UNKNOWN


@final
@dataclass(frozen=True)
class FlatMap(_Flattened):
    """The inner datasets one after the other."""


@final
@dataclass(frozen=True)
class Interleave(_Flattened):
    """`block_length` elements of each of `cycle_length` inner datasets in turn."""

    _: KW_ONLY
    cycle_length: int
    block_length: int = 1

    def __post_init__(self) -> None:
        for name in ("cycle_length", "block_length"):
            if getattr(self, name) < 1:
                raise InvalidArgumentError(
                    f"{name} must be at least 1, but got {getattr(self, name)}.",
                    fix="pass how many datasets to read in turn, and how many elements of each.",
                    origin=self.origin,
                )
