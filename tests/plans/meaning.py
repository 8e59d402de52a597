"""What a plan means, in plain Python: its elements one at a time, without any Block.

A function marked `@means` is given a node and the elements of its children, and yields the node's. What
is random, or has passes or datasets of its own, stands in `meaning`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from hypothesis import strategies as st

from evenfeed.core.randomness.random_bits import key_of
from evenfeed.core.randomness.seeds import AnySeed
from evenfeed.plan.addressing import addressing
from evenfeed.plan.buffering import Cache, Snapshot
from evenfeed.plan.choosing import Random, Sample
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import WithKeys
from evenfeed.plan.flattening import Opens
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take, made_by_function
from evenfeed.plan.own_rows import OwnRows


class Failed:
    """Stands for an element that is an error: a batch of two shapes, a function that raised."""

    def __repr__(self) -> str:
        return "FAILED"


FAILED: Final = Failed()
COUNTING: Final = (
    Take,
    Skip,
    Shard,
    OwnRows,
    Shuffle,
)  # read by position, they count elements that fail
DRAWN: Final = (Shuffle, Random, Sample, WithKeys)  # the nodes in which something is random
_PLACED: Final = object()  # an element that fails, with a position of its own
Events = Iterator[Any]  # elements, FAILED among them
Seeds = list[list[int]]  # of all that is random in a plan, or opens datasets, each node once

# Gives the elements of a dataset that a node opens, by its number and what makes it.
Opened = Callable[[int, Callable[[], Node]], Events]

_MEANINGS: Final[dict[type[Node], Callable[..., Events]]] = {}

Plans = st.SearchStrategy[Node]

# How to make random plans with a node at the top, from plans below it.
STEPS: Final[dict[type[Node], Callable[[Plans], Plans]]] = {}


@dataclass(frozen=True)
class Where:
    """What an element depends on besides the node: the seeds of the pass, and where and when it is read.

    Attributes:
        seeds: By the identity of a node.
        repeated: The nodes that stand in several places.
        place: How many paths to sources lie before.
        epoch: The round of a repetition above.
        by_position: The identities of the nodes that are read by position.
        kept: The passes that caches have completed, by the identity of what they keep them in.
    """

    seeds: dict[int, list[int]]
    repeated: set[int]
    by_position: set[int] = field(default_factory=set)
    place: int = 0
    epoch: int = 0
    kept: dict[Any, list[Any]] = field(default_factory=dict)

    def seed(self, node: Any) -> list[int]:
        """Return what the numbers of a node are drawn from in this round."""
        return [*self.seed_in_place(node), self.epoch if node.reshuffle else 0]

    def seed_in_place(self, node: Any) -> list[int]:
        """Return the seed of a node in the place where it is read."""
        own = id(node) in self.repeated and node.reshuffle
        return [*self.seeds[id(node)], *([self.place] if own else [])]

    def of_children(self, node: Node) -> "list[tuple[Node, Where]]":
        """Return the children, and where they stand."""
        found, place = [], self.place
        for child in node.children:
            found.append((child, replace(self, place=place)))
            place += _paths(child)
        return found


def drawn(plan: Node) -> list[Any]:
    """Return what is random in a plan, or opens datasets, each node once."""
    return [node for node in plan.walk() if isinstance(node, (*DRAWN, Opens))]


def top(plan: Node, seeds: Seeds) -> Where:
    """Return where a plan stands that is read with these seeds."""
    nodes = drawn(plan)
    assert len(nodes) == len(seeds)
    by_node = {id(node): list(seed) for node, seed in zip(nodes, seeds, strict=True)}
    times = Counter(map(id, every_path(plan)))
    return Where(
        by_node, {node for node, count in times.items() if count > 1}, set(_by_position(plan))
    )


# The kinds of nodes that are read one element after another, though they could be addressed.
_sequential: Final[ContextVar[frozenset[type[Node]]]] = ContextVar(
    "_sequential", default=frozenset()
)


@contextmanager
def sequential(kinds: frozenset[type[Node]]) -> Iterator[None]:
    """Let plans with a node of these kinds mean what they mean if they are read one element after another."""
    token = _sequential.set(kinds)
    try:
        yield
    finally:
        _sequential.reset(token)


def _by_position(plan: Node) -> Iterator[int]:
    reasons, kinds = addressing(plan), _sequential.get()
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        parts = list(node.walk())
        if reasons[id(node)][0] is None and not any(type(part) in kinds for part in parts):
            yield from map(id, parts)
        else:
            waiting.extend(node.children)


def every_path(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, as often as there are paths to them."""
    yield node
    for child in node.children:
        yield from every_path(child)


def _paths(node: Node) -> int:
    return sum(map(_paths, node.children)) or 1


def means(
    kind: type[Node], made_by: Callable[[Plans], Plans] | None = None
) -> Callable[[Callable[..., Events]], Callable[..., Events]]:
    """Mark a function that is given a node and the elements of its children, and yields the node's.

    That of a node in which something is random is given its key before these, and that of one that opens
    datasets a function that gives their elements: of their number, and of what makes them.

    Args:
        kind: The node.
        made_by: Returns random plans with the node at the top, of plans below it. Sources have none.
    """

    def mark(function: Callable[..., Events]) -> Callable[..., Events]:
        _MEANINGS[kind] = function
        if made_by is not None:
            STEPS[kind] = made_by
        return function

    return mark


def meaning(node: Node, where: Where) -> Events:
    """Yield the parts of each element of `node`, one element at a time; FAILED where one is an error."""
    children = where.of_children(node)
    match node:
        case Repeat():
            return _played(node, where)
        case Cache() | Snapshot():
            return _kept(node, where)
        case Concatenate():
            return (element for child, place in children for element in meaning(child, place))
    given: list[Any] = []
    if isinstance(node, DRAWN):
        given = [key_of(*where.seed(node))]
    elif isinstance(node, Opens):
        given = [_opener(node, where)]
    events = [meaning(*child) for child in children]
    if isinstance(node, COUNTING) and id(node) in where.by_position:
        placed = (_PLACED if event is FAILED else event for event in events[0])
        found = _MEANINGS[type(node)](node, *given, placed)
        return (FAILED if event is _PLACED else event for event in found)
    found = _MEANINGS[type(node)](node, *given, *events)
    if isinstance(node, Zip) and id(node) in where.by_position and node.size >= 0:
        return islice(found, node.size)  # nothing is read of a longer part behind the end
    return found


def _opener(node: Opens, where: Where) -> "Opened":
    """Return what gives the elements of the datasets that a node opens, by their numbers."""

    def opened(number: int, make: Callable[[], Node]) -> Events:
        seed = [*where.seed(node), number]
        with made_by_function(node.nesting + 1):
            plan = make()
        numbers = seed[len(node.seed) :]
        parts = enumerate(drawn(plan))
        seeds = [_seed_inside(part, n, seed, numbers, node.nesting) for n, part in parts]
        return meaning(plan, replace(top(plan, seeds), kept=where.kept))

    return opened


def _seed_inside(
    node: Any, index: int, seed: list[int], numbers: list[int], depth: int
) -> list[int]:
    """Return the seed of a node in a dataset that was opened: one that was made then, or given."""
    is_new = node.nesting > depth
    own = node.seed
    if isinstance(own, AnySeed) and (is_new or node.reshuffle):
        own = divmod(key_of(*seed, index), 2**64)
    return [*own, *([0] if is_new or not node.reshuffle else numbers)]


def _kept(node: Cache | Snapshot, where: Where) -> Events:
    """Return what is kept, as it is now; else the child's elements, to be kept if all are read."""
    memory = node.folder if isinstance(node, Snapshot) else node.filename or node.identity
    if memory in where.kept:
        return iter(where.kept[memory])
    return _taken_down(node, memory, where)


def _taken_down(node: Cache | Snapshot, memory: Any, where: Where) -> Events:
    found, failed = list[Any](), False
    own = top(node.child, [where.seed_in_place(part) for part in drawn(node.child)])
    for element in meaning(node.child, replace(own, epoch=where.epoch, kept=where.kept)):
        failed = failed or element is FAILED
        found += [] if element is FAILED else [element]
        if isinstance(node, Cache) and len(found) == node.child.size:
            where.kept.setdefault(memory, found)
        yield element
    if isinstance(node, Cache) or not failed:
        where.kept.setdefault(memory, found)


def _played(node: Repeat, where: Where) -> Events:
    first = where.epoch * (node.count if node.count >= 0 else 2**64)
    played = 0
    while played != node.count:
        empty = True
        for element in meaning(node.child, replace(where, epoch=first + played)):
            empty = False
            yield element
        if empty and node.count < 0:
            return
        played += 1


def any_failed(found: list[Any]) -> bool:
    return any(element is FAILED for element in found)
