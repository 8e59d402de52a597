"""Which pass a cache or a snapshot gives in one place of a plan."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, final

from evenfeed.core.errors import EvenfeedError
from evenfeed.formats.pages.saved import find_saved
from evenfeed.plan.buffering import Cache, Snapshot
from evenfeed.plan.flattening import read_by
from evenfeed.plan.node import Node, walk
from evenfeed.runtime.caches.cache_files import store_of


@final
@dataclass
class Keeping:
    """What a run decided for one place of a plan: to read what is below, or a pass that is kept.

    It is part of the run's state: a round that is read again is read from where it came, whatever was
    completed since.

    Attributes:
        decided: The last round for which it was decided.
        since: The first round that reads the kept pass; None while none does.
        origin: Which pass that is.
        beneath: The passes that were kept further below when the last round was decided.
    """

    decided: int = -1
    since: int | None = None
    origin: Any = None
    beneath: list[Any] = field(default_factory=list[Any])

    def kept(self, epoch: int) -> Any:
        """Return which pass a round reads; None where it reads what is below."""
        return self.origin if self.since is not None and epoch >= self.since else None


# The nodes that keep a pass.
Keeps: TypeAlias = Cache | Snapshot

# Tells apart where passes are kept: the identity of what holds them in memory, or a path.
Key: TypeAlias = int | str


@final
class KeptPasses:
    """What one run knows of the passes that are kept, and what it decided to read.

    A run that begins here reads what it finds in this process. One that was begun elsewhere, or is taken
    up again, reads what it would have found there, for other iterators may have kept other passes here.

    Args:
        plan: What is read.
        around: The same of the run that this one is a part of.
        opened: Whether the plan was made while the other run was going on, and finds what that finds.
            Otherwise it lies below a cache, and is told what was kept when that began.
    """

    def __init__(
        self, plan: Node, around: "KeptPasses | None" = None, *, opened: bool = False
    ) -> None:
        self._plan = plan
        self._around = around
        self._opened = opened
        begins_here = around is None or around._known is None
        self._known: dict[Key, Any] | None = None if begins_here else {}  # None: what is found here
        self._places: dict[tuple[int, int], Keeping] = {}
        self._adopted: tuple[KeptPasses, int] | None = None  # by whom, and its place there

    def decide(self, node: Keeps, place: int, epoch: int) -> Keeping:
        """Decide what a node reads in a round, once; return what was decided for its place."""
        if self._adopted is not None:
            owner, first = self._adopted
            return owner.decide(node, first + place, epoch)
        keeping = self._places.setdefault((id(node), place), Keeping())
        if epoch > keeping.decided:
            if keeping.since is None and (found := self.found(node)) is not None:
                keeping.since, keeping.origin = epoch, found
            keeping.decided, keeping.beneath = epoch, self._known_below(node.child)
        return keeping

    def found(self, node: Keeps) -> Any:
        """Return which pass of a node is kept; None where none is known to be."""
        if self._known is None:
            return kept_here(node)
        if self._around is not None and self._finds_what_is_around(_key(node)):
            return self._around.found(node)
        return self._known.get(_key(node))

    def complete(self, node: Keeps, origin: Any) -> None:
        """Note that a pass was read to its end: it is kept, unless another is already."""
        if self._adopted is not None:
            self._adopted[0].complete(node, origin)
            return
        key = _key(node)
        if self._known is not None and not self._finds_what_is_around(key):
            self._known.setdefault(key, origin)
        if self._around is not None and self._around._has(key):
            self._around.complete(node, origin)

    def _finds_what_is_around(self, key: Key) -> bool:
        return self._opened and self._around is not None and self._around._has(key)

    def _has(self, key: Key) -> bool:
        return key in self._keys or self._finds_what_is_around(key)

    @cached_property
    def _nodes(self) -> list[Keeps]:
        return _keepers_in(self._plan)

    @cached_property
    def _keys(self) -> frozenset[Key]:
        return frozenset(map(_key, self._nodes))

    def agrees_with(self, other: "KeptPasses") -> bool:
        """Return True if what another run decided, which was begun here, may be taken over."""
        return self._known is None or not other._places

    def adopt(self, other: "KeptPasses", place: int) -> None:
        """Take over what was decided while a part of the plan was read, and decide for it from now on."""
        other._adopted = self, place
        for (node, inner), keeping in other._places.items():
            self._places[node, place + inner] = keeping

    def state(self) -> list[Any]:
        """Return what was decided, and which passes are kept, as data for JSON."""
        if not self._nodes:
            return [[], []]
        numbers = {id(node): number for number, node in enumerate(self._nodes)}
        decided = [
            [numbers[node], place, known.decided, known.since, known.beneath]
            for (node, place), known in self._places.items()
        ]
        origins = {node: known.origin for (node, _), known in self._places.items() if known.origin}
        return [decided, self._known_in(self._plan, lambda n: origins.get(id(n)) or self._own(n))]

    def _own(self, node: Keeps) -> Any:
        """Return which pass is kept, unless the state of the run around says it."""
        return None if self._finds_what_is_around(_key(node)) else self.found(node)

    def _known_below(self, child: Node) -> list[Any]:
        return self._known_in(child, self.found)

    def _known_in(self, plan: Node, found: Callable[[Keeps], Any]) -> list[Any]:
        """Return the passes that are kept in a part of the plan; what lies below one is part of it."""
        nodes = self._nodes if plan is self._plan else _keepers_in(plan)
        if not nodes:
            return []
        kept = {id(node): found(node) for node in nodes}
        seen = {
            id(node)
            for node in walk(plan, lambda node: () if kept.get(id(node)) else read_by(node))
        }
        return [
            [number, kept[id(node)]]
            for number, node in enumerate(nodes)
            if id(node) in seen and kept[id(node)] is not None
        ]

    def restore(self, state: list[Any]) -> None:
        """Take up what another run over the same plan knew and decided."""
        decided, kept = state
        known = {int(number): origin for number, origin in kept}
        self._known = {_key(self._nodes[number]): origin for number, origin in known.items()}
        self._places = {
            (id(self._nodes[int(number)]), int(place)): Keeping(
                last, since, None if since is None else known.get(int(number)), beneath
            )
            for number, place, last, since, beneath in decided
        }


def kept_here(node: Keeps) -> Any:
    """Return which pass of a node is kept in this process, or on its disk; None where none is."""
    with suppress(EvenfeedError):  # it is raised when the file is read
        if isinstance(node, Cache):
            return store_of(node).origin()
        saved = find_saved(node.folder)
        return None if saved is None else saved.origin
    return None


def _key(node: Keeps) -> Key:
    if isinstance(node, Snapshot):
        return node.folder
    return node.filename or node.memory.number


def _keepers_in(plan: Node) -> list[Keeps]:
    """Return what keeps passes: in the plan, then in the datasets that functions are known to read."""
    found = [node for node in walk(plan, read_by) if isinstance(node, (Cache, Snapshot))]
    own = set(map(id, plan.walk())) if found else set[int]()
    return sorted(found, key=lambda node: id(node) not in own)
