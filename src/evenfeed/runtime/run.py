"""One pass over a plan: what is random in it, fixed for that pass."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar, cast, final

from evenfeed.plan.buffering import Cache
from evenfeed.plan.choosing import Random, Sample
from evenfeed.plan.elementwise import WithKeys
from evenfeed.plan.node import Node
from evenfeed.plan.options_node import options_of
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.saving import Snapshot
from evenfeed.runtime.operator import Operator

# The nodes in which something is random.
Drawn: TypeAlias = Shuffle | Random | Sample | WithKeys
Build: TypeAlias = "Callable[[Node, Run], Operator]"


class Closable(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """End it."""
        ...


Lasting = TypeVar("Lasting", bound=Closable)


@final
class Run:
    """The seeds of one pass. They are part of its state, so that a restored pass goes on as it began.

    Args:
        plan: What is read.
        ahead: Whether the pass only looks at what the next one will read, and is not counted.
    """

    def __init__(self, plan: Node, *, ahead: bool = False) -> None:
        self.is_ahead = ahead
        self._plan = plan
        self._around: Run | None = None
        self._draws: dict[Hashable, Counter[Any]] = {}
        self._shuffles = list(_drawn_in(plan))
        self._seeds = [_fresh(node, ahead=ahead) for node in self._shuffles]
        self._lasting: dict[int, Closable] = {}

    def seed(self, node: Drawn) -> tuple[int, ...]:
        """Return the numbers that the order of a shuffle follows from."""
        place = next(i for i, other in enumerate(self._shuffles) if other is node)
        return tuple(self._seeds[place])

    def seeds_in(self, plan: Node) -> list[tuple[int, ...]]:
        """Return the seeds of all that is random in a part of the plan."""
        return [self.seed(node) for node in _drawn_in(plan)]

    def seed_of_round(self, node: Drawn, epoch: int) -> tuple[int, ...]:
        """Return the numbers that follow from a seed in one round of a repetition."""
        return (*self.seed(node), epoch if node.reshuffle else 0)

    def inside(self, around: "Run") -> "Run":
        """Return this pass as one over a dataset that was made in another pass: under its options."""
        self._around = around
        return self

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

    def take_up(self, begun: "Run") -> None:
        """Go on with what functions drew in a pass that was begun to learn what they return."""
        self._draws.update(begun._draws)

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
        """Return the seeds, for `restore`."""
        return self._seeds

    def restore(self, state: Any) -> None:
        """Take up the seeds of another pass over the same plan."""
        self._seeds = state


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
    """A dataset that was made while another is read, and its position."""

    def __init__(self, plan: Node, build: Build) -> None:
        self.plan = with_own_shuffles(plan)
        self._run = Run(self.plan)
        self._build = build
        self.operator = build(self.plan, self._run)

    def state(self) -> Any:
        """Return the seeds and the position."""
        return [self._run.state(), self.operator.state()]

    def restore(self, state: Any) -> None:
        """Take up seeds and position."""
        seeds, position = state
        self._run.restore(seeds)
        self.operator = self._build(self.plan, self._run)
        self.operator.restore(position)


def with_own_shuffles(plan: Node) -> Node:
    """Return the plan with a node of its own for a shuffle that stands in several places.

    `zip(mixed, mixed)` reads two passes over one dataset, and each has its own order.
    """
    return _own(plan, set())


def _own(value: Any, seen: set[int]) -> Any:
    if type(value) is tuple:
        parts = cast("tuple[Any, ...]", value)
        own = tuple(_own(part, seen) for part in parts)
        return own if any(a is not b for a, b in zip(own, parts, strict=True)) else parts
    if not isinstance(value, Node):
        return value
    old = {part.name: getattr(value, part.name) for part in fields(value)}
    new = {name: _own(part, seen) for name, part in old.items()}
    changes = {name: part for name, part in new.items() if part is not old[name]}
    again = isinstance(value, Drawn) and id(value) in seen
    seen.add(id(value))
    return replace(value, **changes) if changes or again else value


def _drawn_in(plan: Node) -> Iterator[Drawn]:
    """Yield what is random in a plan, parents first; what is kept has passes of its own below it."""
    if isinstance(plan, Drawn):
        yield plan
    if not isinstance(plan, Cache | Snapshot):
        for child in plan.children:
            yield from _drawn_in(child)


def _fresh(node: Drawn, *, ahead: bool) -> list[int]:
    if not node.reshuffle:
        return [*node.seed, 0]
    return [*node.seed, node.passes.peek() if ahead else node.passes.take()]
