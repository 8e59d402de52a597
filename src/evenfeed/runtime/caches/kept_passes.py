"""Decides, per run, whether a cache or a snapshot reads its input or a stored pass, and which one.

The decisions are part of the run's state, so a restored run reads the same passes, even in a process that
has stored others since.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, final

from evenfeed.core.errors import EvenfeedError
from evenfeed.formats.pages.saved import find_saved
from evenfeed.plan.buffering import Cache, Snapshot
from evenfeed.plan.flattening import read_by
from evenfeed.plan.node import Identity, Node, walk
from evenfeed.runtime.caches.cache_files import store_of


@final
@dataclass
class Keeping:
    """A run's decision for one place in the plan: read the input, or a stored pass.

    It is part of the run's state. An epoch that is read again reads from the same place as before, whatever
    was completed since.

    Attributes:
        decided: The last epoch that has a decision.
        since: The first epoch that reads the stored pass; None while no epoch does.
        origin: Which pass that is.
        beneath: The passes that were stored further below when the last epoch was decided.
    """

    decided: int = -1
    since: int | None = None
    origin: Any = None
    beneath: list[Any] = field(default_factory=list[Any])

    def kept(self, epoch: int) -> Any:
        """Return which stored pass an epoch reads; None if it reads the input."""
        return self.origin if self.since is not None and epoch >= self.since else None


# The nodes that store a pass.
Keeps: TypeAlias = Cache | Snapshot

# Identifies the place of a stored pass: the identity of a cache in memory, or a path.
Key: TypeAlias = Identity | str


@final
class KeptPasses:
    """The stored passes that one run knows, and its decisions about which to read.

    A run that starts here reads the passes of this process. A run that started elsewhere, or was restored,
    reads the passes that it would have found there, because other iterators may have stored others here.

    Args:
        plan: The plan of the run.
        around: The `KeptPasses` of the enclosing run.
        opened: Whether the plan was made during the enclosing run, and finds the same passes. Otherwise it
            is the input of a cache, and gets the passes that were stored when the cache started.
    """

    def __init__(
        self, plan: Node, around: "KeptPasses | None" = None, *, opened: bool = False
    ) -> None:
        self._plan = plan
        self._enclosing = around
        self._opened = opened
        starts_here = around is None or around._known is None
        # None: look in this process.
        self._known: dict[Key, Any] | None = None if starts_here else {}
        self._places: dict[tuple[int, int], Keeping] = {}
        self._adopted: tuple[KeptPasses, int] | None = None  # the adopting run, and the place in it

    def decide(self, node: Keeps, place: int, epoch: int) -> Keeping:
        """Decide once what a node reads in an epoch; return the decisions for its place."""
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
        """Return which pass of a node is stored, as far as this run knows; None if there is none."""
        if self._known is None:
            return kept_here(node)
        if self._enclosing is not None and self._enclosing_run_has(_key(node)):
            return self._enclosing.found(node)
        return self._known.get(_key(node))

    def complete(self, node: Keeps, origin: Any) -> None:
        """Note that a pass was read to its end: it is stored, unless another one is already."""
        if self._adopted is not None:
            self._adopted[0].complete(node, origin)
            return
        key = _key(node)
        if self._known is not None and not self._enclosing_run_has(key):
            self._known.setdefault(key, origin)
        if self._enclosing is not None and self._enclosing._has(key):
            self._enclosing.complete(node, origin)

    def _enclosing_run_has(self, key: Key) -> bool:
        return self._opened and self._enclosing is not None and self._enclosing._has(key)

    def _has(self, key: Key) -> bool:
        return key in self._keys or self._enclosing_run_has(key)

    @cached_property
    def _nodes(self) -> list[Keeps]:
        return _storing_nodes(self._plan)

    @cached_property
    def _keys(self) -> frozenset[Key]:
        return frozenset(map(_key, self._nodes))

    def agrees_with(self, other: "KeptPasses") -> bool:
        """Return True if this run may adopt the decisions of another run of this process."""
        return self._known is None or not other._places

    def adopt(self, other: "KeptPasses", place: int) -> None:
        """Adopt the decisions of a run that read a part of the plan, and decide for it from now on."""
        other._adopted = self, place
        for (node, inner), keeping in other._places.items():
            self._places[node, place + inner] = keeping

    def state(self) -> list[Any]:
        """Return the decisions and the stored passes, as JSON data."""
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
        """Return which pass is stored, unless the state of the enclosing run contains it."""
        return None if self._enclosing_run_has(_key(node)) else self.found(node)

    def _known_below(self, child: Node) -> list[Any]:
        return self._known_in(child, self.found)

    def _known_in(self, plan: Node, found: Callable[[Keeps], Any]) -> list[Any]:
        """Return the stored passes in a part of the plan, without those below another stored pass."""
        nodes = self._nodes if plan is self._plan else _storing_nodes(plan)
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
        """Restore what another run over the same plan knew and decided."""
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
    """Return which pass of a node is stored in this process or on disk; None if there is none."""
    with suppress(EvenfeedError):  # reading the file raises it again
        if isinstance(node, Cache):
            return store_of(node).origin()
        saved = find_saved(node.folder)
        return None if saved is None else saved.origin
    return None


def _key(node: Keeps) -> Key:
    if isinstance(node, Snapshot):
        return node.folder
    return node.filename or node.identity


def _storing_nodes(plan: Node) -> list[Keeps]:
    """Return the nodes that store passes: first those of the plan, then those of known inner datasets."""
    found = [node for node in walk(plan, read_by) if isinstance(node, (Cache, Snapshot))]
    own = set(map(id, plan.walk())) if found else set[int]()
    return sorted(found, key=lambda node: id(node) not in own)
