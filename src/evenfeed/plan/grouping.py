"""The plan node for batch, and the base class of all batches of a fixed size."""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, final

from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import (
    INFINITE,
    UNKNOWN,
    NoneTensorSpec,
    TensorSpec,
    TypeSpec,
    is_of_one_shape,
)
from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node


@dataclass(frozen=True)
class Batches(Node):
    """Groups a fixed number of consecutive elements; the last group may be short."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential="each element is made of several",
        passes_files=True,
        rewinds=True,
        saves_at_delivery=True,
    )

    child: Node
    batch_size: int
    _: KW_ONLY
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InvalidArgumentError(
                f"batch_size must be at least 1, but got {self.batch_size}.",
                fix="pass the number of elements that make up one batch.",
                origin=self.origin,
            )

    @property
    def size(self) -> int:
        if self.child.size in (INFINITE, UNKNOWN):
            return self.child.size
        full, rest = divmod(self.child.size, self.batch_size)
        return full + (rest > 0 and not self.drop_remainder)

    @property
    def batch_size_seen(self) -> int | None:
        return self.batch_size

    @property
    def short_batch(self) -> int | None:
        short = self.child.size % self.batch_size if self.child.size > 0 else 0
        return None if self.drop_remainder or short == 0 else short

    @property
    def row_count(self) -> int:
        size = self.child.size
        short = size % self.batch_size if self.drop_remainder and size > 0 else 0
        return size - short


@final
@dataclass(frozen=True)
class Batch(Batches):
    """Stacks consecutive elements along a new leading axis.

    `parallel` means that num_parallel_calls was passed. It does not change the batches, but TensorFlow does not
    know the size of such batches when it splits them among replicas. `row_splits_dtype` is set if tensors of different
    shapes become a ragged tensor.
    """

    parallel: bool = field(default=False, repr=False)
    row_splits_dtype: DType | None = field(default=None, repr=False)

    FACTS: ClassVar[NodeFacts] = replace(Batches.FACTS, sequential=None, addressed_since=3)

    def why_sequential(self, *, selected: bool) -> str | None:
        if self._may_not_stack or self.child.can_fail:
            return "batches begin elsewhere after an element that fails"
        if self.child.may_be_damaged and not selected:
            return "batches begin elsewhere after a damaged row"
        return None

    @property
    def can_fail(self) -> bool:
        return self._may_not_stack or self.child.can_fail

    @property
    def _may_not_stack(self) -> bool:
        return not all(map(is_of_one_shape, flatten(self.row_spec, DATA)))

    @property
    def batch_size_seen(self) -> int | None:
        return None if self.parallel else self.batch_size

    @property
    def row_spec(self) -> Any:
        """The spec of the rows of a batch."""
        if self.row_splits_dtype is None:
            return self.child.element_spec
        return map_structure(self._of_row, self.child.element_spec, rules=DATA)

    def _of_row(self, spec: TypeSpec) -> TypeSpec:
        if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
            return spec
        unknown = [axis for axis, length in enumerate(spec.shape) if length is None]
        if not unknown:
            return spec
        return RaggedTensorSpec(spec.shape, spec.dtype, unknown[-1], self.row_splits_dtype)

    @property
    def element_spec(self) -> Any:
        length = self.batch_size if self.drop_remainder else None

        def of_batch(spec: TypeSpec) -> TypeSpec:
            return batched(spec, length)

        return map_structure(of_batch, self.row_spec, rules=DATA)


def batched(spec: TypeSpec, length: int | None) -> TypeSpec:
    """Return the spec of a batch of values with a spec."""
    match spec:
        case TensorSpec():
            return TensorSpec(TensorShape([length]).concatenate(spec.shape), spec.dtype)
        case BatchableSpec():
            return spec.batched(length)
        case NoneTensorSpec():
            return spec
        case _:
            raise TypeError(
                described(
                    f"{spec} cannot be batched.",
                    fix="extract the values first: filter(lambda x: x.has_value()), "
                    "then map(lambda x: x.get_value()).",
                )
            )
