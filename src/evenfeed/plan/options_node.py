"""Options that travel with a plan."""

from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.options import Options, frozen
from evenfeed.plan.node import Node


@final
@dataclass(frozen=True)
class WithOptions(Node):
    """The child's elements, under options for it and all that is below and above."""

    child: Node
    options: Options

    def __post_init__(self) -> None:
        if not isinstance(self.options, Options):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"with_options takes options, but got {shortened(self.options)}.",
                    fix="pass evenfeed.data.Options().",
                    origin=self.origin,
                )
            )
        # The user's own object may change later; this dataset must not.
        object.__setattr__(self, "options", frozen(self.options))

    @property
    def element_spec(self) -> Any:
        """The child's."""
        return self.child.element_spec

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size


def options_of(plan: Node) -> Options:
    """Return what is set in a plan, the inner settings first, so that later ones win."""
    found = Options()
    for node in plan.bottom_up():
        if isinstance(node, WithOptions):
            found = found.merge(node.options)
    return frozen(found)
