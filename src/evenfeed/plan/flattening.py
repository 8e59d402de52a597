"""Elements that a user's function makes datasets of."""

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn, Protocol, final

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.function import UserFunction
from evenfeed.plan.mapping import AUTOTUNE
from evenfeed.plan.node import Node
from evenfeed.plan.opening import Opens


class MakesDatasets(UserFunction, Protocol):
    """A user's function that makes a dataset of an element."""

    @property
    def stand_in(self) -> Node:
        """The plan that it makes of an element without a value: what all that it makes have in common."""
        ...

    @property
    def plan_seen(self) -> Node | None:
        """A plan that it made already; None where an element would have to be read for one."""
        ...


@dataclass(frozen=True)
class _Flattened(Opens):
    """The elements of the datasets that a function makes of the child's elements."""

    child: Node
    function: MakesDatasets

    @property
    def element_spec(self) -> Any:
        """What the elements of the inner datasets have in common."""
        return self.function.output_spec

    @property
    def size(self) -> int:
        """Unknown: it hangs on what the function makes."""
        return UNKNOWN


@final
@dataclass(frozen=True)
class FlatMap(_Flattened):
    """The inner datasets one after the other."""


@final
@dataclass(frozen=True)
class Interleave(_Flattened):
    """`block_length` elements of each of `cycle_length` inner datasets in turn."""

    _: KW_ONLY
    cycle_length: int
    block_length: int = 1
    num_parallel_calls: int | None = None

    def __post_init__(self) -> None:
        for name in ("cycle_length", "block_length"):
            if getattr(self, name) < 1:
                self._refuse(
                    f"{name} must be at least 1, but got {getattr(self, name)}.",
                    "pass how many datasets to read in turn, and how many elements of each.",
                )
        calls = self.num_parallel_calls
        if calls is not None and calls < 1 and calls != AUTOTUNE:
            self._refuse(
                f"num_parallel_calls must be at least 1, but got {calls}.",
                "pass the number of calls to run at a time, or evenfeed.data.AUTOTUNE.",
            )
        if calls is not None and calls > self.cycle_length:
            self._refuse(
                f"num_parallel_calls must be at most cycle_length, which is {self.cycle_length}, "
                f"but got {calls}.",
                f"pass cycle_length={calls}, or num_parallel_calls=evenfeed.data.AUTOTUNE.",
            )

    def _refuse(self, what: str, fix: str) -> NoReturn:
        raise InvalidArgumentError(what, fix=fix, origin=self.origin)

    @property
    def size(self) -> int:
        """Unknown; as in TensorFlow, without end where a parallel one reads a child without end."""
        endless = self.num_parallel_calls is not None and self.child.size == INFINITE
        return INFINITE if endless else UNKNOWN


def usual_cycle_length(num_parallel_calls: int | None) -> int:
    """Return how many datasets are read in turn where that is not said."""
    cores = os.cpu_count() or 1
    if num_parallel_calls is None:
        return cores
    # TensorFlow prepares two more datasets for each that it reads, so that all cores have one.
    return max(num_parallel_calls, 1) if num_parallel_calls != AUTOTUNE else -(-cores // 3)


def read_by(node: Node) -> tuple[Node, ...]:
    """Return what a node reads, and a dataset that its function is known to make."""
    inner = node.function.plan_seen if isinstance(node, FlatMap | Interleave) else None
    return node.children if inner is None else (*node.children, inner)
