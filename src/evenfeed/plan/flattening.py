"""Datasets that are made while another is read."""

import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NoReturn, Protocol, final

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.seeds import seed_of_opening
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import Effects
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, map_structure
from evenfeed.plan.batching import padable
from evenfeed.plan.elementwise import AUTOTUNE
from evenfeed.plan.node import Node, UserFunction
from evenfeed.plan.ordering import Passes


@dataclass(frozen=True)
class Opens(Node):
    """A node that reads datasets which are made on the way, of elements or of files.

    What is random in those follows from the seed, the pass and their number: the same in a pass that is
    resumed, and on all workers.
    """

    _: KW_ONLY
    seed: tuple[int, ...] = field(default_factory=seed_of_opening, compare=False, repr=False)
    passes: Passes = field(default_factory=Passes, compare=False, repr=False)

    reshuffle: ClassVar[bool] = True  # each pass has numbers of its own


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


@final
@dataclass(frozen=True, eq=False)
class GroupByWindow(Opens):
    """Collects elements by key; a group that is full is reduced to a dataset, whose elements come out.

    `effects` says what `reduce` and `window_size` were seen to read and change.
    """

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
            raise TypeError(
                described(
                    f"key_func must return one whole number, but returns {answer}.",
                    fix="cast the key: tf.cast(key, tf.int64).",
                    origin=self.origin,
                )
            )

    @property
    def element_spec(self) -> Any:
        """What the groups are reduced to."""
        return self.spec

    @property
    def size(self) -> int:
        """Unknown, because it depends on the keys; without end where the child is."""
        return INFINITE if self.child.size == INFINITE else UNKNOWN


@final
@dataclass(frozen=True)
class Buckets:
    """Lengths cut into buckets at boundaries, each with a batch size of its own."""

    boundaries: tuple[int, ...]
    batch_sizes: tuple[int, ...]
    _: KW_ONLY
    to_boundary: bool = False

    def __post_init__(self) -> None:
        if len(self.batch_sizes) != len(self.boundaries) + 1:
            raise ValueError(
                described(
                    f"{len(self.boundaries)} boundaries make {len(self.boundaries) + 1} buckets, but there "
                    f"are {len(self.batch_sizes)} batch sizes.",
                    fix="pass one batch size more than boundaries.",
                )
            )

    def of_length(self, length: int) -> int:
        """Return the bucket of a length, which must lie below the last boundary if shapes are fixed."""
        bucket = bisect_right(self.boundaries, length)
        if self.to_boundary and bucket == len(self.boundaries):
            raise InvalidArgumentError(
                f"A sequence of length {length} has no boundary to be padded to.",
                fix="raise the last boundary, or filter long sequences out.",
            )
        return bucket

    def padded_shapes(self, bucket: int, asked: Any, spec: Any) -> Any:
        """Return the shapes to pad to: what was asked for, unknown lengths up to the boundary."""
        shapes = map_structure(_shape_of, spec, rules=DATA) if asked is None else asked
        if not self.to_boundary or bucket >= len(self.boundaries):
            return shapes
        limit = self.boundaries[bucket] - 1

        def filled(shape: Any) -> TensorShape:
            return TensorShape([limit if dim is None else dim for dim in TensorShape(shape)])

        return map_structure(filled, shapes, rules=DATA)


def _shape_of(spec: TypeSpec) -> TensorShape:
    return padable(spec).shape
