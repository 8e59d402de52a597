"""The root of all plan nodes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from evenfeed.core.callsite import Origin, where_called

T = TypeVar("T")


def _once(compute: "Callable[[Node], T]") -> "Callable[[Node], T]":
    """Keep what a fact about a node is."""
    key = f"_{compute.__name__}"

    @wraps(compute)
    def known(node: "Node") -> T:
        kept = vars(node)
        if key not in kept:
            kept[key] = compute(node)
        return kept[key]

    return known


def _from_below(compute: "Callable[[Node], T]") -> "Callable[[Node], T]":
    """Keep a fact that follows from those of the children, and learn theirs first: plans may be deeper than stacks."""
    name = compute.__name__
    key = f"_{name}"

    def is_known(node: "Node") -> bool:
        return key in vars(node)

    @wraps(compute)
    def learnt(node: "Node") -> T:
        kept = vars(node)
        if key not in kept:
            if not all(map(is_known, node.children)):
                for below in _bottom_up(node, is_known):
                    if below is not node:
                        getattr(below, name)
            kept[key] = compute(node)
        return kept[key]

    return learnt


@dataclass(frozen=True)
class Node(ABC):
    """One step of a plan. Two nodes are equal if they say the same, wherever they were written.

    A node may stand in several places of a plan: `zip(data, data)`. So a plan is a graph, which can have far
    fewer nodes than paths. Whatever is learnt of a plan is learnt once for each node.
    """

    _: KW_ONLY
    origin: Origin | None = field(default_factory=where_called, compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in ("element_spec", "size", "depth"):
            own = vars(cls).get(name)
            if isinstance(own, property) and own.fget is not None:
                setattr(cls, name, property(_from_below(own.fget), doc=own.__doc__))

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The specs of an element's parts, in its own structure."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of elements, or `INFINITE` or `UNKNOWN`."""

    @property
    @_once
    def children(self) -> "tuple[Node, ...]":
        """The nodes that this one reads from."""
        return tuple(child for part in fields(self) for child in _nodes(getattr(self, part.name)))

    @property
    @_from_below
    def depth(self) -> int:
        """How many steps read one another, at most, from here to a source."""
        return 1 + max((child.depth for child in self.children), default=0)

    @property
    @_from_below
    def paths(self) -> int:
        """The number of paths from here to sources; a source in several places ends several."""
        return sum(child.paths for child in self.children) or 1

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it, each once, a node behind the first that reads it."""
        return walk(self, lambda node: node.children)

    def bottom_up(self) -> Iterator["Node"]:
        """Yield this node and all below it, each once, a node behind all that it reads."""
        return _bottom_up(self, lambda _: False)


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


def walk(plan: Node, below: Callable[[Node], tuple[Node, ...]]) -> Iterator[Node]:
    """Yield a node and what lies below it, where `below` says what a node reads; each once."""
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(below(node)))


def once_for_each(find: Callable[[Node, Callable[[Node], T]], T]) -> Callable[[Node], T]:
    """Return a function that finds something out about nodes from what it finds out about others, once for each.

    Args:
        find: Is given a node and the function itself.
    """
    known: dict[int, tuple[Node, T]] = {}

    def found(node: Node) -> T:
        if id(node) not in known:
            known[id(node)] = node, find(node, found)  # held, so that no other node gets its id
        return known[id(node)][1]

    return found


def _bottom_up(plan: Node, is_done: Callable[[Node], bool]) -> Iterator[Node]:
    """Yield nodes, those below first; nothing of what lies below one that is done."""
    seen = {id(plan)}
    waiting = [(plan, iter(plan.children))]
    while waiting:
        node, children = waiting[-1]
        for child in children:
            if id(child) not in seen and not is_done(child):
                seen.add(id(child))
                waiting.append((child, iter(child.children)))
                break
        else:
            waiting.pop()
            yield node


def _nodes(value: Any) -> "list[Node]":
    if type(value) is not tuple:
        return [value] if isinstance(value, Node) else []
    return [node for part in cast("tuple[Any, ...]", value) for node in _nodes(part)]


def rebuilt(plan: Node, change: Callable[[Node], Node]) -> Node:
    """Return a plan with each node changed, those below first; what is not changed stays the same object.

    A node that stands in several places is changed once, and stands in all of them.
    """
    done: dict[int, Node] = {}
    for node in plan.bottom_up():
        old = {part.name: getattr(node, part.name) for part in fields(node)}
        new = {name: _replaced(value, done) for name, value in old.items()}
        changes = {name: value for name, value in new.items() if value is not old[name]}
        done[id(node)] = change(replace(node, **changes) if changes else node)
    return done[id(plan)]


def _replaced(value: Any, done: dict[int, Node]) -> Any:
    if type(value) is tuple:
        parts = cast("tuple[Any, ...]", value)
        new = tuple(_replaced(part, done) for part in parts)
        return new if any(a is not b for a, b in zip(new, parts, strict=True)) else parts
    return done[id(value)] if isinstance(value, Node) else value


class UserFunction(Protocol):
    """A function that a user gave to map, filter and the like, traced once when it was given."""

    @property
    def output_spec(self) -> Any:
        """The specs of what it returns, in its own structure."""
        ...

    @property
    def origin(self) -> Origin | None:
        """The user's line that asked for it."""
        ...

    @property
    def is_pure(self) -> bool:
        """Whether it gives the same for the same element each time, so that elements may be reordered."""
        ...
