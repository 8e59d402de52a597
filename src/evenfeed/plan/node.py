"""`Node`, the base class of all plan nodes, and functions that traverse and rebuild plans."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import wraps
from typing import Any, Protocol, TypeVar, cast, final

from evenfeed.core.callsite import Origin, where_called

T = TypeVar("T")


@final
class Identity:
    """Identifies a node for what the program keeps beside it, such as the elements of a cache.

    A node made with `dataclasses.replace` has the identity of the original, so both share what is kept. A deep copy
    has another, also in another process.
    """

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Identity, ()


def _once(compute: "Callable[[Node], T]") -> "Callable[[Node], T]":
    """Cache a property of a node."""
    key = f"_{compute.__name__}"

    @wraps(compute)
    def cached(node: "Node") -> T:
        cache = vars(node)
        if key not in cache:
            cache[key] = compute(node)
        return cache[key]

    return cached


def _from_below(compute: "Callable[[Node], T]") -> "Callable[[Node], T]":
    """Cache a property derived from the children's, computing theirs first: a plan may be deeper than the stack."""
    name = compute.__name__
    key = f"_{name}"

    def is_cached(node: "Node") -> bool:
        return key in vars(node)

    @wraps(compute)
    def cached(node: "Node") -> T:
        cache = vars(node)
        if key not in cache:
            if not all(map(is_cached, node.children)):
                for below in _bottom_up(node, is_cached):
                    if below is not node:
                        getattr(below, name)
            cache[key] = compute(node)
        return cache[key]

    return cached


@dataclass(frozen=True)
class Node(ABC):
    """One step of a plan. Two nodes are equal if their fields are equal, whatever their origin and identity.

    Reading a plan changes no node. What a running program keeps for a node is in `runtime/live_state.py`.

    A node may occur several times in a plan, as in `zip(data, data)`. So a plan is a graph, which can have
    far fewer nodes than paths. Traversals and derived properties visit each node once.
    """

    _: KW_ONLY
    origin: Origin | None = field(default_factory=where_called, compare=False, repr=False)
    identity: Identity = field(default_factory=Identity, compare=False, repr=False)

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
        """The structure of an element, with a spec for each component."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of elements, `INFINITE` or `UNKNOWN`."""

    @property
    @_once
    def children(self) -> "tuple[Node, ...]":
        """The nodes that this one reads from."""
        return tuple(child for part in fields(self) for child in _nodes(getattr(self, part.name)))

    @property
    @_from_below
    def depth(self) -> int:
        """The number of nodes on the longest path to a source."""
        return 1 + max((child.depth for child in self.children), default=0)

    @property
    @_from_below
    def paths(self) -> int:
        """The number of paths to sources. A source that occurs several times ends several paths."""
        return sum(child.paths for child in self.children) or 1

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all nodes below it once, each after the first node that reads it."""
        return walk(self, lambda node: node.children)

    def bottom_up(self) -> Iterator["Node"]:
        """Yield this node and all nodes below it once, each after all nodes that it reads."""
        return _bottom_up(self, lambda _: False)


@dataclass(frozen=True)
class SameElements(Node):
    """A node that yields elements of its child unchanged, possibly a subset or in another order."""

    child: Node

    @property
    def element_spec(self) -> Any:
        return self.child.element_spec

    @property
    def size(self) -> int:
        return self.child.size


def walk(plan: Node, below: Callable[[Node], tuple[Node, ...]]) -> Iterator[Node]:
    """Yield a node and all nodes below it once, where `below` returns the nodes that a node reads."""
    seen: set[int] = set()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(below(node)))


def once_for_each(find: Callable[[Node, Callable[[Node], T]], T]) -> Callable[[Node], T]:
    """Return a memoised version of a recursive function of nodes.

    Args:
        find: Receives a node, and the memoised function for recursive calls.
    """
    known: dict[int, tuple[Node, T]] = {}

    def found(node: Node) -> T:
        if id(node) not in known:
            known[id(node)] = (
                node,
                find(node, found),
            )  # Keeps the node alive, so that its id is not reused.
        return known[id(node)][1]

    return found


def _bottom_up(plan: Node, is_done: Callable[[Node], bool]) -> Iterator[Node]:
    """Yield the nodes of a plan, children first. Does not enter nodes for which `is_done` is true."""
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
    """Return a plan with each node replaced by `change(node)`, children first.

    Unchanged nodes stay the same objects. A node that occurs several times is replaced once, everywhere.
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
    """A user function passed to map, filter and so on; traced once, when it is passed."""

    @property
    def output_spec(self) -> Any:
        """The structure of its result, with a spec for each component."""
        ...

    @property
    def origin(self) -> Origin | None:
        """The line of user code that passed it."""
        ...

    @property
    def is_pure(self) -> bool:
        """True if equal elements always give equal results, so that calls may be reordered."""
        ...
