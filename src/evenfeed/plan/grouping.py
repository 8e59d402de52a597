"""The plan node for batch, and the base class of all batches of a fixed size."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import INFINITE, UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, map_structure
from evenfeed.plan.node import Node
from evenfeed.plan.windows import DatasetSpec


@dataclass(frozen=True)
class Batches(Node):
    """Groups a fixed number of consecutive elements; the last group may be short."""

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


@final
@dataclass(frozen=True)
class Batch(Batches):
    """Stacks consecutive elements along a new leading axis.

    `parallel` means that num_parallel_calls was passed. It does not change the batches, but TensorFlow does not
    know the size of such batches when it splits them among replicas.
    """

    parallel: bool = field(default=False, repr=False)

    @property
    def element_spec(self) -> Any:
        length = self.batch_size if self.drop_remainder else None

        def batched(spec: TypeSpec) -> TypeSpec:
            return _batched(spec, length)

        return map_structure(batched, self.child.element_spec, rules=DATA)


def _batched(spec: TypeSpec, length: int | None) -> TypeSpec:
    match spec:
        case TensorSpec():
            return TensorSpec(TensorShape([length]).concatenate(spec.shape), spec.dtype)
        case DatasetSpec():
            return spec.of_shape(TensorShape([length]).concatenate(spec.shape))
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
