"""Elements made with a state that is carried along."""

from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.conversion import Array
from evenfeed.core.errors import described
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.plan.function import UserFunction
from evenfeed.plan.node import Node


@final
@dataclass(frozen=True, eq=False)
class Scan(Node):
    """Carries a state along and yields an output for each element."""

    child: Node
    structure: Any
    initial: tuple[Array, ...]
    function: UserFunction

    @property
    def element_spec(self) -> Any:
        """What the function yields."""
        return self.function.output_spec[1]

    @property
    def carried_specs(self) -> list[TypeSpec]:
        """The specs of the parts that are carried along."""
        return flatten(self.function.output_spec[0], DATA)

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size


def check_state(old: Any, new: Any, node: Any) -> None:
    """Raise unless a function returns a state like the one it was given."""
    assert_same(old, new, DATA, names=("initial state", "returned state"))
    one: TypeSpec
    for one, two in zip(flatten(old, DATA), flatten(new, DATA), strict=True):
        if one.most_specific_common_supertype([two]) is None:
            raise TypeError(
                described(
                    f"The state must keep its type, but {one} becomes {two}.",
                    fix="cast the returned state, or begin with one of that dtype.",
                    origin=node.origin,
                )
            )


def widened(old: Any, new: Any) -> Any:
    """Return the specs of a state that may have both shapes."""
    pairs = zip(flatten(old, DATA), flatten(new, DATA), strict=True)
    return pack(old, [one.most_specific_common_supertype([two]) for one, two in pairs], DATA)
