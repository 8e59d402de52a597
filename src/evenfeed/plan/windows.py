"""Datasets as elements: `DatasetSpec`, and the plan nodes for `Dataset.window` and its windows."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, TypeAlias, final

from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.optional import Optional
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import (
    INFINITE,
    UNKNOWN,
    CompositeSpec,
    Specified,
    TypeSpec,
    type_spec_from_value,
)
from evenfeed.core.structure import DATA, flatten, map_structure, outline, pack
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node


class DatasetLike(Specified):
    """A dataset as a component of an element. `Dataset` is a subclass."""

    __slots__ = ()

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The structure of its elements, with a spec for each component."""

    @property
    def _type_spec(self) -> "DatasetSpec":
        return DatasetSpec(self.element_spec)


@final
class DatasetSpec(CompositeSpec, BatchableSpec):
    """The spec of a dataset that is a component of an element.

    Args:
        element_spec: The spec of its elements.
        dataset_shape: The shape of a batch of such datasets; () for a single one.
        face: Wraps a plan in a Dataset; set if evenfeed creates the spec.
    """

    __slots__ = ("_dataset_shape", "_element_spec", "_face")

    def __init__(
        self,
        element_spec: object,
        dataset_shape: ShapeLike = (),
        *,
        face: Callable[[Node], Any] | None = None,
    ) -> None:
        self._element_spec = element_spec
        self._face = face
        self._dataset_shape = TensorShape(dataset_shape)

    @staticmethod
    def from_value(value: DatasetLike) -> "DatasetSpec":
        """Return the spec of a dataset."""
        return DatasetSpec(value.element_spec)

    @property
    def element_spec(self) -> Any:
        """The spec of the dataset's elements."""
        return self._element_spec

    @property
    def shape(self) -> TensorShape:
        """The shape of a batch of such datasets; () for a single one."""
        return self._dataset_shape

    def of_shape(self, shape: ShapeLike) -> "DatasetSpec":
        """Return the spec of a batch of such datasets."""
        return DatasetSpec(self.element_spec, shape, face=self._face)

    def with_face(self, face: Callable[[Node], Any]) -> "DatasetSpec":
        """Return the spec with the given `face`."""
        return DatasetSpec(self.element_spec, self.shape, face=face)

    def made_of(self, node: Node) -> Any:
        """Return a plan as a Dataset, if the spec has a `face`."""
        return node if self._face is None else self._face(node)

    def batched(self, length: int | None) -> "DatasetSpec":
        return self.of_shape(TensorShape([length]).concatenate(self.shape))

    def unbatched(self) -> "DatasetSpec":
        return self.of_shape(self.shape[1:])

    def stacked(self, values: Sequence[Any]) -> "DatasetBatch":
        shapes = dict.fromkeys(v.shape for v in values if isinstance(v, DatasetBatch))
        if len(shapes) > 1:
            raise InvalidArgumentError(
                "All elements of a batch must have the same shape, but got "
                + " and ".join(map(str, shapes)),
                fix="to batch batches, pass drop_remainder=True to the first batch().",
            )
        return DatasetBatch(values)

    def rows_of(self, value: "DatasetBatch") -> list[Any]:
        return value.datasets

    def stand_in(self, length: int) -> Any:
        """Return an empty dataset with this spec, or a batch of one, for probing a function."""
        if self.shape.rank:
            return DatasetBatch([self.unbatched().stand_in(length)])
        columns: tuple[list[Any], ...] = tuple([] for _ in self._parts)
        return self.made_of(Held(self.element_spec, columns, 0))

    @property
    def value_type(self) -> type:
        return DatasetLike

    @property
    def _parts(self) -> tuple[TypeSpec, ...]:
        return tuple(flatten(self.element_spec, DATA))

    @property
    def _frame(self) -> object:
        return outline(self.element_spec, DATA), self._dataset_shape

    def _with_parts(self, parts: Sequence[TypeSpec]) -> "DatasetSpec":
        spec = pack(self.element_spec, parts, DATA)
        return DatasetSpec(spec, self._dataset_shape, face=self._face)

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, {self._dataset_shape!r})"


@final
class DatasetBatch(Specified):
    """A batch of datasets. `unbatch` returns them one by one."""

    __slots__ = ("datasets",)

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)

    @property
    def shape(self) -> tuple[int]:
        """The number of datasets, as a shape."""
        return (len(self.datasets),)

    def __repr__(self) -> str:
        return f"DatasetBatch({self.datasets!r})"

    @property
    def _type_spec(self) -> DatasetSpec:
        spec = common_spec(self.datasets)
        return spec.of_shape(TensorShape(self.shape).concatenate(spec.shape))


# What an element may contain besides arrays and None.
ElementValue: TypeAlias = DatasetLike | DatasetBatch | Optional | RaggedTensor | SparseTensor


def common_spec(datasets: Sequence[Any]) -> DatasetSpec:
    """Return the most specific spec that all datasets have in common."""
    first, *others = map(type_spec_from_value, datasets)
    found = first.most_specific_common_supertype(others)
    if isinstance(found, DatasetSpec):
        return found
    raise ValueError(
        described(
            f"The datasets of a list must have compatible elements, but have {first} and "
            f"{next(other for other in others if other != first)}.",
            fix="give all datasets the same structure and dtypes.",
        )
    )


@final
@dataclass(frozen=True)
class Window(Node):
    """Groups elements into windows: one dataset for each component of an element.

    `face` wraps a plan in a Dataset.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential="each element is made of several", passes_files=True
    )

    child: Node
    length: int
    shift: int
    stride: int = 1
    _: KW_ONLY
    drop_remainder: bool = False
    face: Callable[[Node], Any] = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("length", "shift", "stride"):
            value = getattr(self, name)
            if value < 1:
                shown = "size" if name == "length" else name
                raise InvalidArgumentError(
                    f"The {shown} of a window must be at least 1, but got {value}.",
                    fix="call window(3, shift=1) to start a window of three at each element.",
                    origin=self.origin,
                )

    @property
    def element_spec(self) -> Any:
        """A dataset for each part of the child's elements."""

        def spec_of_part(spec: TypeSpec) -> DatasetSpec:
            return DatasetSpec(spec, face=self.face)

        return map_structure(spec_of_part, self.child.element_spec, rules=DATA)

    @property
    def size(self) -> int:
        size = self.child.size
        if size in (INFINITE, UNKNOWN):
            return size
        if not self.drop_remainder:
            return -(-size // self.shift)
        return max(0, (size - self.span) // self.shift + 1)

    @property
    def span(self) -> int:
        """The number of elements from the first to the last element of a window, both included."""
        return (self.length - 1) * self.stride + 1


@final
@dataclass(frozen=True, eq=False)
class Held(Node):
    """Elements that are already in memory, such as those of a window."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=None, method="the elements of a window")

    spec: Any
    columns: tuple[Array | list[Any] | None, ...]
    length: int
    _: KW_ONLY
    maker: object = field(default=None, compare=False, repr=False)  # see plan/templates.py

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def size(self) -> int:
        return self.length
