"""The root of all plan nodes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, cast

from evenfeed.core.callsite import Origin, where_called


@dataclass(frozen=True)
class Node(ABC):
    """One step of a plan. Two nodes are equal if they say the same, wherever they were written."""

    _: KW_ONLY
    origin: Origin | None = field(default_factory=where_called, compare=False, repr=False)

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The specs of an element's parts, in its own structure."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of elements, or `INFINITE` or `UNKNOWN`."""

    @property
    def children(self) -> "tuple[Node, ...]":
        """The nodes that this one reads from."""
        return tuple(child for part in fields(self) for child in _nodes(getattr(self, part.name)))

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class SameElements(Node):
    """A node whose elements are the child's, though perhaps not all of them or not in their order."""

    child: Node

    @property
    def element_spec(self) -> Any:
        """The child's."""
        return self.child.element_spec

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size


def _nodes(value: Any) -> "list[Node]":
    if type(value) is not tuple:
        return [value] if isinstance(value, Node) else []
    return [node for part in cast("tuple[Any, ...]", value) for node in _nodes(part)]


def rebuilt(plan: Node, change: Callable[[Node], Node]) -> Node:
    """Return a plan with each node changed, those below first; what is not changed stays the same object."""
    old = {part.name: getattr(plan, part.name) for part in fields(plan)}
    new = {name: _rebuilt(value, change) for name, value in old.items()}
    changes = {name: value for name, value in new.items() if value is not old[name]}
    return change(replace(plan, **changes) if changes else plan)


def _rebuilt(value: Any, change: Callable[[Node], Node]) -> Any:
    if type(value) is tuple:
        parts = cast("tuple[Any, ...]", value)
        new = tuple(_rebuilt(part, change) for part in parts)
        return new if any(a is not b for a, b in zip(new, parts, strict=True)) else parts
    return rebuilt(value, change) if isinstance(value, Node) else value
