"""One pass over a plan: what is random in it, fixed for that pass."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast, final

from evenfeed.core.random_bits import key_of
from evenfeed.core.seeds import AnySeed
from evenfeed.plan.combining import Random, Sample
from evenfeed.plan.elementwise import WithKeys
from evenfeed.plan.flattening import Opens
from evenfeed.plan.node import Node
from evenfeed.plan.options import options_of
from evenfeed.plan.ordering import Shuffle, made_by_function
from evenfeed.runtime.caches.kept_passes import Keeping, Keeps, KeptPasses
from evenfeed.runtime.operator import Operator

# The nodes in which something is random.
Drawn: TypeAlias = Shuffle | Random | Sample | WithKeys | Opens
_DRAWN: Final = (Shuffle, Random, Sample, WithKeys, Opens)
Build: TypeAlias = "Callable[[Node, Run, int], Operator]"

# Returns the seed of a node and the numbers of its pass, given which of those that are random it is.
Numbering: TypeAlias = Callable[[int, Drawn], Sequence[int]]


class Closable(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """End it."""
        ...


Lasting = TypeVar("Lasting", bound=Closable)


def new_pass(_: int, node: Drawn) -> list[int]:
    """Count a new pass over a dataset."""
    return [*node.seed, node.passes.take() if node.reshuffle else 0]


def next_pass(_: int, node: Drawn) -> list[int]:
    """Look at what the next pass will be, and count none."""
    return [*node.seed, node.passes.peek() if node.reshuffle else 0]


@final
class Run:
    """What is random in one pass. It is part of its state, so that a restored pass goes on as it began.

    All follows from the seeds of the nodes, also of those below a cache, and from positions: nothing is drawn
    while the pass is read. A node that stands in several places has an order of its own in each.

    Args:
        plan: What is read.
        numbering: Says what the pass of each node begins with.
        around: The run during which the plan is read.
        below: Whether the plan lies below a cache there; otherwise it was made on the way.

    Attributes:
        is_ahead: Whether it only looks at what the next pass will read, and is not counted.
        place: Which part of the plan is read: how many paths to sources lie before it.
    """

    def __init__(
        self,
        plan: Node,
        numbering: Numbering = new_pass,
        around: "Run | None" = None,
        *,
        below: bool = False,
    ) -> None:
        self.is_ahead = numbering is next_pass
        self.place = 0
        self._plan = plan
        self._around = around
        self._draws: dict[Hashable, Counter[Any]] = {}
        nodes = list(plan.walk())
        self._drawn = [node for node in nodes if isinstance(node, _DRAWN)]
        self._indices = {id(node): index for index, node in enumerate(self._drawn)}
        self._seeds = [list(numbering(index, node)) for index, node in enumerate(self._drawn)]
        self._repeated = _repeated(nodes)
        self._in_turn: set[int] = set()
        self._kept = KeptPasses(plan, around and around._kept, opened=not below)
        self._lasting: dict[int, Closable] = {}

    @property
    def has_places(self) -> bool:
        """Whether something that is random, or keeps passes, stands in several places."""
        return bool(self._repeated)

    def is_read_in_turn(self, node: Node) -> bool:
        """Return True if it is known that a node's elements have no positions."""
        return id(node) in self._in_turn

    def note(self, node: Node, *, in_turn: bool) -> None:
        """Note whether a node's elements have positions, so that nobody looks again."""
        if in_turn:
            self._in_turn.add(id(node))

    def children_of(self, node: Node) -> "list[tuple[Node, Run]]":
        """Return the children of a node, each with the run that knows its place."""
        if not self._repeated or len(node.children) == 1:
            return [(child, self) for child in node.children]
        found: list[tuple[Node, Run]] = []
        place = self.place
        for child in node.children:
            moved = copy(self)
            moved.place = place
            found.append((child, moved))
            place += child.paths
        return found

    def seed(self, node: Drawn) -> tuple[int, ...]:
        """Return the numbers that the order of a shuffle follows from."""
        return (*self._seeds[self._indices[id(node)]], *self._place_of(node))

    def _place_of(self, node: Drawn) -> tuple[int, ...]:
        return (self.place,) if id(node) in self._repeated and node.reshuffle else ()

    def seeds_in(self, plan: Node) -> list[list[int]]:
        """Return the seeds of all that is random in a part of the plan."""
        return [list(self.seed(node)) for node in _drawn_in(plan)]

    def seed_of_round(self, node: Drawn, epoch: int) -> tuple[int, ...]:
        """Return the numbers that follow from a seed in one round of a repetition."""
        return (*self.seed(node), epoch if node.reshuffle else 0)

    @cached_property
    def keeps_order(self) -> bool:
        """Whether elements that are made in parallel wait for earlier ones, where a step does not say."""
        said = options_of(self._plan).deterministic
        if said is None and self._around is not None:
            return self._around.keeps_order
        return said is not False

    @property
    def is_outermost(self) -> bool:
        """Whether the pass is over a whole plan, and not over a dataset that was made in another pass."""
        return self._around is None

    def draws_of(self, function: Hashable, begun: Counter[Any] | None = None) -> Counter[Any]:
        """Return how often each random operation of a user's function has drawn, in all rounds of the pass.

        Args:
            function: What tells the function apart.
            begun: What it had drawn before the pass came to it.
        """
        if self._around is not None:
            return self._around.draws_of(function, begun)
        return self._draws.setdefault(function, Counter(begun or ()))

    def opened(
        self, node: Opens, epoch: int, number: int, make: Callable[[], Node]
    ) -> "tuple[Node, Run]":
        """Return the dataset that a node makes as the `number`-th of a round, and its run.

        As in TensorFlow, a dataset that the user's function makes begins with its first pass, and one that it
        was given, made before, has a pass of its own each time.
        """
        seed = self.seed_of_round(node, epoch)
        pass_of_given = (*seed[len(node.seed) :], number)
        with made_by_function(node.passes.depth + 1):
            plan = make()

        def numbered(index: int, inner: Drawn) -> list[int]:
            is_new = inner.passes.depth > node.passes.depth
            own = inner.seed
            if isinstance(own, AnySeed) and (is_new or inner.reshuffle):
                own = divmod(key_of(*seed, number, index), 1 << 64)
            return [*own, *((0,) if is_new or not inner.reshuffle else pass_of_given)]

        return plan, Run(plan, numbered, self)

    def keeping(self, node: Keeps, epoch: int) -> Keeping:
        """Return what a cache or a snapshot reads in a round, which is decided when this is first asked."""
        return self._kept.decide(node, self.place, epoch)

    def complete(self, node: Keeps, origin: Any) -> None:
        """Note that a cache or a snapshot has read a pass to its end."""
        self._kept.complete(node, origin)

    def below(self, node: Keeps, epoch: int) -> list[Any]:
        """Return which pass a cache reads from below in a round, as data for JSON."""
        kept = [[], self.keeping(node, epoch).beneath]
        mixed = any(part.reshuffle for part in _drawn_in(node.child))
        return [[self.seeds_in(node.child), kept], epoch if mixed else 0]

    def begun(self, plan: Node, state: Any) -> "Run":
        """Return the run of a pass over what is below a cache."""
        run = begun_elsewhere(plan, state, self)
        run.is_ahead = self.is_ahead
        return run

    def agrees_with(self, begun: "Run", plan: Node) -> bool:
        """Return True if a run that was begun here has read a part of the plan as this one would have."""
        same = begun.seeds_in(plan) == self.seeds_in(plan)
        return same and self._kept.agrees_with(begun._kept)

    def adopt(self, other: "Run") -> None:
        """Go on with what a run decided, and its functions drew, that has read a part of the plan already."""
        self._kept.adopt(other._kept, self.place)
        self._draws.update(other._draws)

    def lasting(self, node: Node, make: "Callable[[], Lasting]") -> "Lasting":
        """Return what a node has for the whole pass, all rounds of a repetition; made when first asked for."""
        kept = self._lasting.get(id(node))
        if kept is None:
            kept = self._lasting[id(node)] = make()
        return cast("Lasting", kept)

    def close(self) -> None:
        """Close what lasted for the whole pass."""
        for kept in self._lasting.values():
            kept.close()

    def state(self) -> Any:
        """Return the seeds, and which passes are kept, for `restore`."""
        return [list(self._seeds), self.kept_passes()]

    def restore(self, state: Any) -> None:
        """Take up what another pass over the same plan began with."""
        self._seeds[:], kept = state
        self.restore_kept_passes(kept)

    def kept_passes(self) -> Any:
        """Return which passes are kept: all that a run knows besides its seeds."""
        return self._kept.state()

    def restore_kept_passes(self, state: Any) -> None:
        """Take up which passes are kept."""
        self._kept.restore(state)


def begun_elsewhere(plan: Node, state: Any, around: Run | None = None) -> Run:
    """Return the run of a pass that was begun before, or on another worker; it is not counted here."""
    run = Run(plan, next_pass, around, below=True)
    run.restore(state)
    run.is_ahead = False
    return run


class FirstElements(Protocol):
    """The first elements of what a function is given: what it returns is learnt from one of them."""

    def __call__(self) -> Iterable[tuple[int, list[Any]]]:
        """Yield the number and the parts of each."""
        ...

    def take(self, plan: Node, run: Run, epoch: int) -> Operator | None:
        """Return an operator that goes on where they were read, with them; None where that cannot be."""
        ...


@final
class Inner:
    """A dataset that was made while another is read, and its position.

    Its seeds are no part of its state: whoever opens it again knows which one it was.
    """

    def __init__(self, plan: Node, run: Run, build: Build, epoch: int = 0) -> None:
        self.plan = plan
        self._run = run
        self._build = build
        self._epoch = epoch
        self.operator = build(plan, run, epoch)

    def state(self) -> Any:
        """Return which passes it keeps, and the position."""
        return [self._run.kept_passes(), self.operator.state()]

    def restore(self, state: Any) -> None:
        """Take up a position."""
        kept, position = state
        self._run.restore_kept_passes(kept)
        self.operator = self._build(self.plan, self._run, self._epoch)
        self.operator.restore(position)


# Opens a dataset that is made while another is read, by its number.
Opener: TypeAlias = Callable[[int, Callable[[], Node]], Inner]


def _drawn_in(plan: Node) -> Iterator[Drawn]:
    """Yield what is random in a plan, each node once."""
    return (node for node in plan.walk() if isinstance(node, _DRAWN))


def _repeated(nodes: list[Node]) -> frozenset[int]:
    """Return what stands in several places, of what is random or keeps passes: all below a node that several read."""
    if all(len(node.children) < 2 for node in nodes):
        return frozenset()
    readers = Counter(id(child) for node in nodes for child in node.children)
    seen: dict[int, Node] = {}
    waiting = [node for node in nodes if readers[id(node)] > 1]
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            waiting.extend(node.children)
    return frozenset(key for key, node in seen.items() if isinstance(node, Drawn | Keeps))
