"""`Node`, the base class of all plan nodes, and functions that traverse and rebuild plans."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import wraps
from typing import Any, ClassVar, Final, Protocol, TypeVar, cast, final

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.facts import NodeFacts

T = TypeVar("T")
N = TypeVar("N", bound="Node")


@final
class Identity:
    """Identifies a node for what the program keeps beside it, such as the elements of a cache.

    A node made with `dataclasses.replace` has the identity of the original, so both share what is kept. A deep copy
    has another, also in another process.
    """

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Identity, ()


def once(compute: "Callable[[N], T]") -> "Callable[[N], T]":
    """Cache a property of a node."""
    key = f"_{compute.__name__}"

    @wraps(compute)
    def cached(node: N) -> T:
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


# Properties that a node derives from those of its children.
_FROM_BELOW: Final = (
    "element_spec", "size", "depth", "can_fail", "may_be_damaged", "batch_size_seen", "short_batch", "row_count",
    "part_count",
)  # fmt: skip


@dataclass(frozen=True)
class Node(ABC):
    """One step of a plan. Two nodes are equal if their fields are equal, whatever their origin and identity.

    Reading a plan changes no node. What a running program keeps for a node is in `runtime/live_state.py`.

    A node may occur several times in a plan, as in `zip(data, data)`. So a plan is a graph, which can have
    far fewer nodes than paths. Traversals and derived properties visit each node once.

    Other rooms ask for the `facts` of a node and the properties below, and for its class only if a rule is about that
    one node.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts()

    _: KW_ONLY
    origin: Origin | None = field(default_factory=where_called, compare=False, repr=False)
    identity: Identity = field(default_factory=Identity, compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in _FROM_BELOW:
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
    def facts(self) -> NodeFacts:
        """What other rooms may assume of this node."""
        return self.FACTS

    def why_sequential(self, *, selected: bool) -> str | None:  # noqa: ARG002 - most do not care
        """Return why elements have no positions although those of the children have; None if they have positions too.

        Args:
            selected: Whether a node above prefers positions.
        """
        return self.facts.sequential

    @property
    @_from_below
    def can_fail(self) -> bool:
        """True if an element may be an error, even if no file is damaged. Asked only of nodes with positions."""
        return any(child.can_fail for child in self.children)

    @property
    @_from_below
    def may_be_damaged(self) -> bool:
        """True if elements come from files, which may be damaged."""
        return any(child.may_be_damaged for child in self.children)

    @property
    @_from_below
    def batch_size_seen(self) -> int | None:
        """The size of the batches that it yields, from the batch nodes below; None if TensorFlow does not know it."""
        sizes = {child.batch_size_seen for child in self.children}
        return sizes.pop() if self.facts.keeps_batch_size and len(sizes) == 1 else None

    @property
    @_from_below
    def short_batch(self) -> int | None:
        """The number of rows of a short last batch; None if it is full, or unknown."""
        return self.children[0].short_batch if self.facts.same_elements else None

    @property
    @_from_below
    def row_count(self) -> int:
        """The total number of rows of the batches that it yields, `INFINITE` or `UNKNOWN`."""
        if self.facts.same_elements:
            return self.children[0].row_count
        return INFINITE if self.size == INFINITE else UNKNOWN

    def of_worker(self, children: "tuple[Node, ...]", worker: int) -> "Node":  # noqa: ARG002 - most are the same
        """Return this node over the children of one worker, which read the files of that worker."""
        return with_own_children(self, children)

    @property
    def reads_files(self) -> bool:
        """True if it is one of TensorFlow's readers, or opens datasets that read files."""
        return False

    @property
    def arguments_shown(self) -> "list[str] | None":
        """The arguments of its method that explain shows; None for all plain fields that differ from their default."""
        return None

    @property
    @once
    def children(self) -> "tuple[Node, ...]":
        """The nodes that this one reads from."""
        return tuple(child for part in fields(self) for child in _nodes(getattr(self, part.name)))

    @property
    @_from_below
    def depth(self) -> int:
        """The number of nodes on the longest path to a source."""
        return 1 + max((child.depth for child in self.children), default=0)

    @property
    def part_count(self) -> int:
        """The number of datasets that it reads one after the other: 1, unless it concatenates."""
        return 1

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


def shared_below(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes of a plan that occur in several places: those with several readers, and all below them."""
    nodes = list(nodes)
    if all(len(node.children) < 2 for node in nodes):
        return []
    readers = Counter(id(child) for node in nodes for child in node.children)
    seen: dict[int, Node] = {}
    waiting = [node for node in nodes if readers[id(node)] > 1]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            waiting.extend(node.children)
    return list(seen.values())


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


def with_children(node: Node, children: tuple[Node, ...]) -> Node:
    """Return a node over other children, given in the order of `children`."""
    following = iter(children)

    def filled(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(filled, cast("tuple[Any, ...]", value)))
        return next(following) if isinstance(value, Node) else value

    return replace(node, **{part.name: filled(getattr(node, part.name)) for part in fields(node)})


def with_own_children(node: Node, children: tuple[Node, ...]) -> Node:
    """Return a node over children that yield other elements, for example those of one worker."""
    made = with_children(node, children)
    # The passes that the original keeps have its elements.
    return replace(made, identity=Identity()) if node.facts.keeps_passes else made


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


class MappedFunction(UserFunction, Protocol):
    """A user function that makes one element of each element."""

    @property
    def why_sequential(self) -> str | None:
        """Why it must be called for one element after another; None if it is pure and runs on whole Blocks."""
        ...

    @property
    def can_fail(self) -> bool:
        """True if it may raise for some elements."""
        ...


class RandomNode(Protocol):
    """The fields of a node whose facts say that it is random."""

    @property
    def seed(self) -> tuple[int, ...]:
        """Determines its random numbers, together with the pass."""
        ...

    @property
    def reshuffle(self) -> bool:
        """True if each pass has random numbers of its own."""
        ...

    @property
    def nesting(self) -> int:
        """The nesting depth of dataset functions in which it was created."""
        ...

    @property
    def identity(self) -> Identity:
        """Identifies it for the count of its passes."""
        ...
