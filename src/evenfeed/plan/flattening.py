"""Plan nodes that open datasets while reading another: flat_map, interleave, group_by_window."""

import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NoReturn, Protocol, final

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.randomness.seeds import seed_of_opening
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import Effects
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, map_structure
from evenfeed.plan.batching import UNCOUNTED, padable
from evenfeed.plan.elementwise import AUTOTUNE
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node, UserFunction
from evenfeed.plan.ordering import nesting_now


@dataclass(frozen=True)
class Opens(Node):
    """A node that creates datasets while it is read, from elements or from files.

    Random operations in those datasets are seeded by the node's seed, the pass and the dataset's index, so they
    are the same in a resumed pass and on all workers.
    """

    _: KW_ONLY
    seed: tuple[int, ...] = field(default_factory=seed_of_opening, compare=False, repr=False)
    nesting: int = field(default_factory=nesting_now, compare=False, repr=False)

    @property
    def reshuffle(self) -> bool:
        """True: each pass draws different random numbers."""
        return True


class MakesDatasets(UserFunction, Protocol):
    """A user function that maps an element to a dataset."""

    @property
    def stand_in(self) -> Node:
        """The plan that it returns for a traced element; it describes all plans that it returns."""
        ...

    @property
    def plan_seen(self) -> Node | None:
        """A plan that it has returned; None if getting one would require reading an element."""
        ...


@dataclass(frozen=True)
class _Flattened(Opens):
    """Yields the elements of the datasets to which a function maps the child's elements."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=UNCOUNTED, passes_files=True, random=True)

    child: Node
    function: MakesDatasets

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec

    @property
    def size(self) -> int:
        return UNKNOWN

    @property
    def reads_files(self) -> bool:
        return any(node.reads_files for node in self.function.stand_in.walk())


@final
@dataclass(frozen=True)
class FlatMap(_Flattened):
    """Reads the inner datasets one after the other."""


@final
@dataclass(frozen=True)
class Interleave(_Flattened):
    """Cycles through `cycle_length` inner datasets, taking `block_length` elements from each."""

    _: KW_ONLY
    cycle_length: int
    block_length: int = 1
    num_parallel_calls: int | None = None

    def __post_init__(self) -> None:
        for name in ("cycle_length", "block_length"):
            if getattr(self, name) < 1:
                self._refuse(
                    f"{name} must be at least 1, but got {getattr(self, name)}.",
                    "pass the number of datasets to interleave, and of elements to take from each.",
                )
        calls = self.num_parallel_calls
        if calls is not None and calls < 1 and calls != AUTOTUNE:
            self._refuse(
                f"num_parallel_calls must be at least 1, but got {calls}.",
                "pass the number of concurrent calls, or evenfeed.data.AUTOTUNE.",
            )
        if calls is not None and calls > self.cycle_length:
            self._refuse(
                f"num_parallel_calls must be at most cycle_length ({self.cycle_length}), "
                f"but got {calls}.",
                f"pass cycle_length={calls}, or num_parallel_calls=evenfeed.data.AUTOTUNE.",
            )

    def _refuse(self, what: str, fix: str) -> NoReturn:
        raise InvalidArgumentError(what, fix=fix, origin=self.origin)

    @property
    def size(self) -> int:
        # As in TensorFlow, a parallel interleave of an infinite child is infinite.
        infinite = self.num_parallel_calls is not None and self.child.size == INFINITE
        return INFINITE if infinite else UNKNOWN


def usual_cycle_length(num_parallel_calls: int | None) -> int:
    """Return the default cycle length of interleave."""
    cores = os.cpu_count() or 1
    if num_parallel_calls is None:
        return cores
    # TensorFlow opens two more datasets ahead for each one that it reads, so a third keeps all cores busy.
    return max(num_parallel_calls, 1) if num_parallel_calls != AUTOTUNE else -(-cores // 3)


def read_by(node: Node) -> tuple[Node, ...]:
    """Return the children of a node, and a dataset that its function has returned, if known."""
    inner = node.function.plan_seen if isinstance(node, FlatMap | Interleave) else None
    return node.children if inner is None else (*node.children, inner)


@final
@dataclass(frozen=True, eq=False)
class GroupByWindow(Opens):
    """Groups elements by key, maps each full group to a dataset, and yields its elements.

    `effects` are those of `reduce` and `window_size` that were known when they were passed.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential=UNCOUNTED, random=True, replays=True, calls_in_order=True
    )

    child: Node
    key: UserFunction
    reduce: Callable[[int, Node], Node]
    window_size: Callable[[int], int]
    spec: Any
    _: KW_ONLY
    effects: Effects = field(default_factory=Effects, compare=False, repr=False)

    def __post_init__(self) -> None:
        answer = self.key.output_spec
        if not (
            isinstance(answer, TensorSpec) and answer.dtype.kind in "iu" and not answer.shape.rank
        ):
            raise ValueError(
                described(
                    f"key_func must return a scalar integer, but returns {answer}.",
                    fix="cast the key: tf.cast(key, tf.int64).",
                    origin=self.origin,
                )
            )

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def size(self) -> int:
        return INFINITE if self.child.size == INFINITE else UNKNOWN


@final
@dataclass(frozen=True)
class Buckets:
    """Buckets of sequence lengths, each with its own batch size."""

    boundaries: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    _: KW_ONLY
    to_boundary: bool = False

    def __post_init__(self) -> None:
        if len(self.batch_sizes) != len(self.boundaries) + 1:
            raise ValueError(
                described(
                    f"{len(self.boundaries)} boundaries make {len(self.boundaries) + 1} buckets, but got "
                    f"{len(self.batch_sizes)} batch sizes.",
                    fix="pass one more batch size than boundaries.",
                )
            )

    def of_length(self, length: int) -> int:
        """Return the bucket of a length. With `to_boundary`, it must be below the last boundary."""
        bucket = bisect_right(self.boundaries, length)
        if self.to_boundary and bucket == len(self.boundaries):
            raise InvalidArgumentError(
                f"A sequence of length {length} is not below any boundary, so it has no length to pad to.",
                fix="raise the last boundary, or filter out long sequences.",
            )
        return bucket

    def padded_shapes(self, bucket: int, wanted: Any, spec: Any) -> Any:
        """Return the shapes to pad to. With `to_boundary`, unknown lengths are padded up to the boundary."""
        shapes = map_structure(_shape_of, spec, rules=DATA) if wanted is None else wanted
        if not self.to_boundary or bucket >= len(self.boundaries):
            return shapes
        limit = self.boundaries[bucket] - 1

        def filled(shape: Any) -> TensorShape:
            return TensorShape([limit if dim is None else dim for dim in TensorShape(shape)])

        return map_structure(filled, shapes, rules=DATA)


def _shape_of(spec: TypeSpec) -> TensorShape:
    return padable(spec).shape
