"""Datasets as values: elements that are datasets themselves, and windows, which are such."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias, final

from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.optional import Optional
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.specs import (
    INFINITE,
    UNKNOWN,
    CompositeSpec,
    Specified,
    TypeSpec,
    type_spec_from_value,
)
from evenfeed.core.structure import DATA, flatten, map_structure, outline, pack
from evenfeed.plan.node import Node


class DatasetLike(Specified):
    """A dataset as a value: the part of an element. The face is one."""

    __slots__ = ()

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The specs of the parts of its elements."""

    @property
    def _type_spec(self) -> "DatasetSpec":
        return DatasetSpec(self.element_spec)


@final
class DatasetSpec(CompositeSpec):
    """The spec of a dataset that is part of an element.

    Args:
        element_spec: The spec of its elements.
        dataset_shape: The shape of an array of such datasets, as batches of them are.
        face: Makes what a user sees of a plan; known where evenfeed itself makes the spec.
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
        """The shape of an array of such datasets."""
        return self._dataset_shape

    def of_shape(self, shape: ShapeLike) -> "DatasetSpec":
        """Return the spec of an array of such datasets."""
        return DatasetSpec(self.element_spec, shape, face=self._face)

    def with_face(self, face: Callable[[Node], Any]) -> "DatasetSpec":
        """Return the spec with what users see of such a dataset."""
        return DatasetSpec(self.element_spec, self.shape, face=face)

    def stand_in(self) -> Any:
        """Return a dataset of this spec without elements, to learn what a function makes of one."""
        if self.shape.rank:
            return DatasetBatch([self.of_shape(self.shape[1:]).stand_in()])
        columns: tuple[list[Any], ...] = tuple([] for _ in self._parts)
        held = Held(self.element_spec, columns, 0)
        return held if self._face is None else self._face(held)

    @property
    def value_type(self) -> type:
        """A dataset."""
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
    """Datasets that were batched; `unbatch` hands them out again."""

    __slots__ = ("datasets",)

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)

    @property
    def shape(self) -> tuple[int]:
        """How many there are."""
        return (len(self.datasets),)

    def __repr__(self) -> str:
        return f"DatasetBatch({self.datasets!r})"

    @property
    def _type_spec(self) -> DatasetSpec:
        spec = common_spec(self.datasets)
        return spec.of_shape(TensorShape(self.shape).concatenate(spec.shape))


# What an element may hold besides arrays and None.
ElementValue: TypeAlias = DatasetLike | DatasetBatch | Optional


def common_spec(datasets: Sequence[Any]) -> DatasetSpec:
    """Return the spec that all datasets have."""
    first, *others = map(type_spec_from_value, datasets)
    found = first.most_specific_common_supertype(others)
    if isinstance(found, DatasetSpec):
        return found
    raise ValueError(
        described(
            f"Datasets of unlike elements cannot stand in one list: {first} and "
            f"{next(other for other in others if other != first)}.",
            fix="give all of them the same structure and dtypes.",
        )
    )


@final
@dataclass(frozen=True)
class Window(Node):
    """Runs of elements as datasets, one dataset for each part of an element.

    `face` makes what a user sees of a plan.
    """

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
                    fix="window(3, shift=1) begins a window of three at each element.",
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
        """How many windows begin; only the full ones where short ones are dropped."""
        size = self.child.size
        if size in (INFINITE, UNKNOWN):
            return size
        if not self.drop_remainder:
            return -(-size // self.shift)
        return max(0, (size - self.span) // self.shift + 1)

    @property
    def span(self) -> int:
        """How many elements lie between the first and the last of a window, both included."""
        return (self.length - 1) * self.stride + 1


@final
@dataclass(frozen=True, eq=False)
class Held(Node):
    """Elements that are at hand already, such as those of a window."""

    spec: Any
    columns: tuple[Array | list[Any] | None, ...]
    length: int

    @property
    def element_spec(self) -> Any:
        """What was known of the elements where they came from."""
        return self.spec

    @property
    def size(self) -> int:
        """Their number."""
        return self.length
