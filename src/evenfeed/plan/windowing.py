"""Elements grouped by a key that a user's function gives them."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import Effects
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, map_structure
from evenfeed.plan.batching import padable
from evenfeed.plan.function import UserFunction
from evenfeed.plan.node import Node
from evenfeed.plan.opening import Opens


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
