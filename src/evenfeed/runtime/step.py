"""How nodes become operators: `@runs(Batch)` marks the function that makes the operator of a `Batch`."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

from evenfeed.plan.flattening import Opens
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.run import Build, Inner, Opener, Run

N = TypeVar("N", bound=Node)
C = TypeVar("C", bound=Node)
M = TypeVar("M", bound="Callable[[Any], Operator]")


@final
class Step(Generic[N]):
    """A node that is about to run, in one pass and one round of a repeat above it.

    Args:
        node: The node.
        run: The random state of the pass.
        epoch: The round; a shuffle has a different order in each.
        build: Returns the operator of a node, given its run and round.
    """

    def __init__(self, node: N, run: Run, epoch: int, build: Build) -> None:
        self.node = node
        self.run = run
        self.epoch = epoch
        self._build = build

    @property
    def child(self) -> Operator:
        """A new operator of the first child."""
        return self.children[0]

    @property
    def is_early(self) -> bool:
        """Whether the operator of the child was started before this pass."""
        return self._early is not None

    def is_of_version(self, version: int) -> bool:
        """Return True unless the restored state has an earlier version."""
        return self.run.version is None or self.run.version >= version

    def below(self, child: C) -> "Step[C]":
        """Return the step of the only child."""
        ((_, run),) = self.run.children_of(self.node)
        return Step(child, run, self.epoch, self._build)

    @cached_property
    def children(self) -> list[Operator]:
        """New operators of all children, created on first use."""
        if self._early is not None:
            return [self._early]
        return [
            self._build(child, run, self.epoch) for child, run in self.run.children_of(self.node)
        ]

    @cached_property
    def function(self) -> RowFunction:
        """The user function of the node, as it is in this pass."""
        function = self._asked
        assert isinstance(function, RowFunction)
        return (function.recalling() if self._early else function).in_pass(self.run, self.node)

    @cached_property
    def datasets(self) -> InnerDatasets:
        """The user function of the node that returns datasets, as it is in this pass."""
        function = self._asked
        assert isinstance(function, InnerDatasets)
        return (function.recalling() if self._early else function).in_pass(self.run, self.node)

    @property
    def seed(self) -> tuple[int, ...]:
        """The numbers that determine what is random about the node in this round."""
        node: Any = self.node
        return self.run.seed_of_round(node, self.epoch)

    @property
    def opens(self) -> Opener:
        """Opens the datasets that the node makes while it is read."""
        node = self.node
        assert isinstance(node, Opens)
        return lambda number, make: Inner(
            *self.run.opened(node, self.epoch, number, make), self._build
        )

    def build(self, node: Node, run: Run | None = None, epoch: int | None = None) -> Operator:
        """Return a new operator of another node, by default in the same pass and round."""
        return self._build(
            node, self.run if run is None else run, self.epoch if epoch is None else epoch
        )

    @cached_property
    def _asked(self) -> RowFunction | InnerDatasets | None:
        for part in vars(self.node).values():
            if isinstance(part, (RowFunction, InnerDatasets)):  # a union takes ten times as long
                return part
        return None

    @cached_property
    def _early(self) -> Operator | None:
        """The operator of the child, if it was started early to learn what the function returns.

        The function then remembers what it returned for those elements.
        """
        first = None if self._asked is None else self._asked.first_elements
        return None if first is None else first.take(self.node.children[0], self.run, self.epoch)


Maker: TypeAlias = Callable[[Step[Any]], Operator]
_MAKERS: Final[dict[type[Node], Maker]] = {}


def runs(kind: type[Node]) -> Callable[[M], M]:
    """Mark the function that makes the operator of a node."""

    def mark(make: M) -> M:
        _MAKERS[kind] = make
        return make

    return mark


def operator_of(step: Step[Any]) -> Operator:
    """Return a new operator that runs a node."""
    node: Node = step.node
    make = _MAKERS.get(type(node))
    if make is None:
        raise TypeError(f"no operator runs {type(node).__name__}")
    return make(step)
