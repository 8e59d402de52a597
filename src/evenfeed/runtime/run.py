"""One pass over a plan, with its random seeds fixed."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import copy
from functools import cache, cached_property
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast, final

import numpy as np

from evenfeed.core.randomness.random_bits import key_of
from evenfeed.core.randomness.seeds import AnySeed
from evenfeed.plan.addressing import Reason, addressing
from evenfeed.plan.flattening import Opens
from evenfeed.plan.node import Node, RandomNode, shared_below
from evenfeed.plan.ordering import Repeat, made_by_function
from evenfeed.runtime.caches.kept_passes import Keeping, Keeps, KeptPasses
from evenfeed.runtime.live_state import passes_of
from evenfeed.runtime.measuring.stage_meters import PlanMeter
from evenfeed.runtime.operator import Operator

Build: TypeAlias = "Callable[[Node, Run, int], Operator]"

# Returns the seed and pass numbers of a random node, given its index among the random nodes.
Numbering: TypeAlias = Callable[[int, RandomNode], Sequence[int]]


# The GNU C library maps arrays larger than a threshold, and unmaps them when they are freed: touching the pages of the
# next array takes longer than filling it. The threshold rises to the size of the largest array that was freed, up to
# this size. The library then keeps twice as much free memory at most.
_LARGEST_KEPT: Final = (1 << 25) - (1 << 16)


@cache
def _keep_freed_memory() -> None:
    """Let the memory of freed Blocks be used for the next ones: allocate and free one large array, untouched."""
    np.empty(_LARGEST_KEPT, np.uint8)


class Closable(Protocol):
    """An object that can be closed."""

    def close(self) -> None:
        """Release its resources."""
        ...


Lasting = TypeVar("Lasting", bound=Closable)


def new_pass(_: int, node: RandomNode) -> list[int]:
    """Return the seed numbers of a new pass, and count it."""
    return [*node.seed, passes_of(cast("Node", node)).take() if _is_counted(node) else 0]


def next_pass(_: int, node: RandomNode) -> list[int]:
    """Return the seed numbers of the next pass without counting it."""
    return [*node.seed, passes_of(cast("Node", node)).peek() if _is_counted(node) else 0]


def _is_counted(node: RandomNode) -> bool:
    return node.reshuffle and getattr(node, "counts_passes", True)


@final
class Run:
    """The random state of one pass. It is saved with the position, so that a restored pass continues unchanged.

    Everything random follows from positions and from the seeds of the nodes, including those below a cache: nothing is
    drawn while the pass is read. A node that occurs in several places has a different order in each.

    Args:
        plan: The plan to read.
        numbering: Returns the seed numbers of each random node.
        around: The run during which the plan is read.
        below: Whether the plan lies below a cache of that run; otherwise it was made while reading.

    Attributes:
        is_ahead: Whether it only previews what the next pass will read, and is not counted.
        place: The place in the plan that is read: how many paths to sources come before it.
        unordered: The map whose results may overtake each other, if the reader allows it.
        meter: Measures the stages; None if nothing is measured.
    """

    def __init__(
        self,
        plan: Node,
        numbering: Numbering = new_pass,
        around: "Run | None" = None,
        *,
        below: bool = False,
    ) -> None:
        _keep_freed_memory()
        self.is_ahead = numbering is next_pass
        self.place = 0
        self.unordered: Node | None = None
        self.meter: PlanMeter | None = None
        self._plan = plan
        self._around = around
        self._draws: dict[tuple[Hashable, int], Counter[Any]] = {}
        nodes = list(plan.walk())
        self._drawn = list(_random(nodes))
        self._indices = {id(node): index for index, node in enumerate(self._drawn)}
        self._seeds = [list(numbering(index, node)) for index, node in enumerate(self._drawn)]
        self._repeated = _repeated(nodes)
        # Why nodes must be read sequentially, by their ids; and those of which only reading shows it.
        self._reasons: dict[int, Reason | None] = {}
        self._found_sequential: dict[int, Reason] = {}
        self._judged: list[Node] = []  # keeps nodes alive, so that no other gets their ids
        self._version: int | None = None
        self._kept = KeptPasses(plan, around and around._kept, opened=not below)
        self._lasting: dict[int, Closable] = {}
        self._replaced: list[Closable] = []

    @property
    def version(self) -> int | None:
        """The version of the restored state, which decides how the plan is read; None for the current version."""
        return self._version if self._around is None else self._around.version

    @version.setter
    def version(self, version: int | None) -> None:
        self._version = version
        self._reasons.clear()

    def why_sequential(self, node: Node) -> Reason | None:
        """Return why a node must be read sequentially; None if its elements have positions."""
        if id(node) not in self._reasons:
            self._judged.append(node)
            found = addressing(node, self.version, self._found_sequential)
            self._reasons.update((key, reason) for key, (reason, _) in found.items())
        return self._reasons[id(node)]

    def note_sequential(self, node: Node, text: str) -> None:
        """Record that a node turned out to have no positions."""
        self._found_sequential[id(node)] = Reason(node, text)
        self._reasons.clear()

    def place_of(self, node: Node) -> int:
        """Return the place that is read, or 0 if the elements of a node are the same in all places."""
        return self.place if id(node) in self._placed else 0

    @cached_property
    def _placed(self) -> set[int]:
        """The ids of all nodes that read a node whose elements differ from place to place."""
        found: set[int] = set()
        for node in self._plan.bottom_up() if self._repeated else ():
            if id(node) in self._repeated or any(id(child) in found for child in node.children):
                found.add(id(node))
        return found

    def children_of(self, node: Node) -> "list[tuple[Node, Run]]":
        """Return the children of a node, each with the run that knows its place."""
        if len(node.children) == 1:
            return [(child, self) for child in node.children]
        found: list[tuple[Node, Run]] = []
        place = self.place
        for child in node.children:
            moved = copy(self)
            moved.place = place
            found.append((child, moved))
            place += child.paths
        return found

    @property
    def _kept_place(self) -> int:
        """The place as saved positions know it: 0 unless a node differs from place to place."""
        return self.place if self._repeated else 0

    def seed(self, node: RandomNode) -> tuple[int, ...]:
        """Return the numbers that determine the random order of a node."""
        return (*self._seeds[self._indices[id(node)]], *self._place_of(node))

    def _place_of(self, node: RandomNode) -> tuple[int, ...]:
        return (self.place,) if id(node) in self._repeated and node.reshuffle else ()

    def seeds_in(self, plan: Node) -> list[list[int]]:
        """Return the seeds of all random nodes in a part of the plan."""
        return [list(self.seed(node)) for node in _random_nodes(plan)]

    def seed_of_round(self, node: RandomNode, epoch: int) -> tuple[int, ...]:
        """Return the numbers that determine a node's randomness in one round of a repeat."""
        return (*self.seed(node), epoch if node.reshuffle else 0)

    @property
    def is_outermost(self) -> bool:
        """True if this pass reads a whole plan, and not a dataset made during another pass."""
        return self._around is None

    @cached_property
    def may_restart(self) -> bool:
        """True if a part of the plan may be read again in this pass, by a repeat or as another inner dataset."""
        return not self.is_outermost or any(isinstance(node, Repeat) for node in self._plan.walk())

    def number_of(self, node: Node) -> int:
        """Return the index of a node among those of the plan."""
        return self._numbers[id(node)]

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {id(node): number for number, node in enumerate(self._plan.walk())}

    def draws_of(self, function: Hashable, begun: Counter[Any] | None = None) -> Counter[Any]:
        """Return how often each random operation of a user function has drawn, over all rounds of the pass.

        A function that occurs in several places draws a separate sequence in each, whichever is read first.

        Args:
            function: Identifies the function.
            begun: What it had drawn before this pass.
        """
        here = function, self.place
        if self._around is not None:
            return self._around.draws_of(here, begun)
        return self._draws.setdefault(here, Counter(begun or ()))

    def opened(
        self, node: Opens, epoch: int, number: int, make: Callable[[], Node]
    ) -> "tuple[Node, Run]":
        """Return the dataset that a node makes as the `number`-th of a round, and its run.

        As in TensorFlow, a dataset that the user function creates starts with its first pass. One that existed before
        has a new pass each time.
        """
        seed = self.seed_of_round(node, epoch)
        pass_of_given = (*seed[len(node.seed) :], number)
        with made_by_function(node.nesting + 1):
            plan = make()

        def numbered(index: int, inner: RandomNode) -> list[int]:
            is_new = inner.nesting > node.nesting
            own = inner.seed
            if isinstance(own, AnySeed) and (is_new or inner.reshuffle):
                own = divmod(key_of(*seed, number, index), 1 << 64)
            return [*own, *((0,) if is_new or not inner.reshuffle else pass_of_given)]

        run = Run(plan, numbered, self)
        if self.meter is not None:
            run.meter = self.meter.inside(node)
        return plan, run

    def keeping(self, node: Keeps, epoch: int) -> Keeping:
        """Return what a cache or a snapshot reads in a round. The first call decides."""
        return self._kept.decide(node, self._kept_place, epoch)

    def complete(self, node: Keeps, origin: Any) -> None:
        """Record that a cache or a snapshot has read a pass to its end."""
        self._kept.complete(node, origin)

    def below(self, node: Keeps, epoch: int) -> list[Any]:
        """Return the pass that a cache reads from the plan below it in a round, as JSON data."""
        kept = [[], self.keeping(node, epoch).beneath]
        mixed = any(part.reshuffle for part in _random_nodes(node.child))
        return [[self.seeds_in(node.child), kept], epoch if mixed else 0]

    def begun(self, plan: Node, state: Any) -> "Run":
        """Return the run of a pass over the plan below a cache."""
        run = run_started_elsewhere(plan, state, self)
        run.is_ahead = self.is_ahead
        run.meter = self.meter
        return run

    def agrees_with(self, early: "Run", plan: Node) -> bool:
        """Return True if a run that was started early has read a part of the plan as this one would."""
        same = early.seeds_in(plan) == self.seeds_in(plan) and early.version == self.version
        return same and self._kept.agrees_with(early._kept)

    def adopt(self, other: "Run") -> None:
        """Take over what an early run decided, and how often its functions drew."""
        self._kept.adopt(other._kept, self._kept_place)
        if self.meter is not None and other.meter is not None:
            self.meter.adopt(other.meter)
        for (function, place), drawn in other._draws.items():
            self._draws[function, self.place + place] = drawn

    def lasting(
        self,
        node: Node,
        make: "Callable[[], Lasting]",
        fits: "Callable[[Lasting], bool]" = lambda _: True,
    ) -> "Lasting":
        """Return an object that a node keeps for the whole pass, over all rounds; created when none fits."""
        kept = self._lasting.get(id(node))
        if kept is None or not fits(cast("Lasting", kept)):
            if kept is not None:
                self._replaced.append(kept)  # what was read ahead may still use it
            kept = self._lasting[id(node)] = make()
        return cast("Lasting", kept)

    def close(self) -> None:
        """Close the objects kept for the whole pass."""
        for kept in (*self._lasting.values(), *self._replaced):
            kept.close()

    def state(self) -> Any:
        """Return the seeds and which passes are kept, for `restore`."""
        return [list(self._seeds), self.kept_passes()]

    def restore(self, state: Any) -> None:
        """Restore what `state` of another run over the same plan returned."""
        self._seeds[:], kept = state
        self.restore_kept_passes(kept)

    def kept_passes(self) -> Any:
        """Return which passes are kept: the run's state except its seeds."""
        return self._kept.state()

    def restore_kept_passes(self, state: Any) -> None:
        """Restore which passes are kept."""
        self._kept.restore(state)


def run_started_elsewhere(plan: Node, state: Any, around: Run | None = None) -> Run:
    """Return the run of a pass that was started before, or on another worker; it is not counted here."""
    run = Run(plan, next_pass, around, below=True)
    run.restore(state)
    run.is_ahead = False
    return run


class FirstElements(Protocol):
    """The first elements that a function will get; one of them shows what it returns."""

    def __call__(self) -> Iterable[tuple[int, list[Any]]]:
        """Yield the index and the parts of each."""
        ...

    def take(self, plan: Node, run: Run, epoch: int) -> Operator | None:
        """Return an operator that continues this read, first elements included; None if it cannot be used."""
        ...


@final
class Inner:
    """A dataset that was made while another is read, and its position.

    Its seeds are not part of its state: the operator that opens it again knows them.
    """

    def __init__(self, plan: Node, run: Run, build: Build, epoch: int = 0) -> None:
        self.plan = plan
        self._run = run
        self._build = build
        self._epoch = epoch
        self.operator = build(plan, run, epoch)

    def state(self) -> Any:
        """Return which passes it keeps, and its position."""
        return [self._run.kept_passes(), self.operator.state()]

    def restore(self, state: Any) -> None:
        """Restore a position."""
        kept, position = state
        self._run.restore_kept_passes(kept)
        self.operator = self._build(self.plan, self._run, self._epoch)
        self.operator.restore(position)


# Opens a dataset that is made while another is read, given its index.
Opener: TypeAlias = Callable[[int, Callable[[], Node]], Inner]


def _random_nodes(plan: Node) -> Iterator[RandomNode]:
    """Yield the random nodes of a plan, each once."""
    return _random(plan.walk())


def _random(nodes: Iterable[Node]) -> Iterator[RandomNode]:
    return (cast("RandomNode", node) for node in nodes if node.facts.random)


def _repeated(nodes: list[Node]) -> frozenset[int]:
    """Return the ids of random or pass-keeping nodes in several places: below a node with several readers."""
    facts = ((node, node.facts) for node in shared_below(nodes))
    return frozenset(id(node) for node, known in facts if known.random or known.keeps_passes)
