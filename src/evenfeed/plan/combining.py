"""Plan nodes that combine datasets (zip, concatenate, choose, sample), and the infinite sources that drive them."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import nesting_now


@final
@dataclass(frozen=True)
class Zip(Node):
    """Combines the elements of several datasets, until one of them ends."""

    structure: Any
    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidArgumentError(
                "zip needs at least one dataset.",
                fix="pass datasets, or a tuple or dict of them.",
                origin=self.origin,
            )

    @property
    def element_spec(self) -> Any:
        return pack(self.structure, [part.element_spec for part in self.parts], DATA)

    @property
    def size(self) -> int:
        sizes = {part.size for part in self.parts} - {INFINITE}
        if not sizes:
            return INFINITE
        return UNKNOWN if UNKNOWN in sizes else min(sizes)


@final
@dataclass(frozen=True)
class Concatenate(Node):
    """The elements of one dataset, then those of another."""

    first: Node
    second: Node

    def __post_init__(self) -> None:
        names = ("first dataset", "second dataset")
        specs = self.first.element_spec, self.second.element_spec
        try:
            assert_same(*specs, DATA, names=names)
        except ValueError as error:
            raise TypeError(str(error)) from None
        for one, two in self._pairs():
            if one.most_specific_common_supertype([two]) is None:
                raise TypeError(
                    described(
                        f"Concatenated datasets must have compatible elements, but have {one} and {two}.",
                        fix="give both datasets the same dtypes first.",
                        origin=self.origin,
                    )
                )

    def _pairs(self) -> list[tuple[TypeSpec, TypeSpec]]:
        first, second = (
            flatten(self.first.element_spec, DATA),
            flatten(self.second.element_spec, DATA),
        )
        return list(zip(first, second, strict=True))

    @property
    def element_spec(self) -> Any:
        common = [one.most_specific_common_supertype([two]) for one, two in self._pairs()]
        return pack(self.first.element_spec, common, DATA)

    @property
    def depth(self) -> int:
        # Nested concatenations are read as one flat list of parts, so they add no depth.
        parts = [(part, isinstance(part, Concatenate)) for part in self.children]
        return max(part.depth + (not in_row) for part, in_row in parts)

    @property
    def size(self) -> int:
        sizes = {self.first.size, self.second.size}
        if INFINITE in sizes:
            return INFINITE
        return UNKNOWN if UNKNOWN in sizes else self.first.size + self.second.size


@final
@dataclass(frozen=True)
class Counter(Node):
    """Counts from `start` in steps of `step`, infinitely; integers wrap around in their dtype."""

    start: int | float
    step: int | float = 1
    _: KW_ONLY
    dtype: DType = dtypes.int64

    @property
    def element_spec(self) -> TensorSpec:
        return TensorSpec([], self.dtype)

    @property
    def size(self) -> int:
        return INFINITE


@final
@dataclass(frozen=True)
class Random(Node):
    """Yields infinitely many random 32-bit integers, the same in each pass unless `reshuffle` is set."""

    seed: tuple[int, ...]
    _: KW_ONLY
    reshuffle: bool = False
    nesting: int = field(default_factory=nesting_now, compare=False, repr=False)

    @property
    def element_spec(self) -> TensorSpec:
        return TensorSpec([], dtypes.int64)

    @property
    def size(self) -> int:
        return INFINITE


@dataclass(frozen=True)
class _OneOfSeveral(Node):
    """Takes each element from one of several datasets."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError(
                described("Expected at least one dataset, but got none.", origin=self.origin)
            )
        for part in self.parts[1:]:
            if _common(self.parts[0], part) is None:
                raise TypeError(
                    described(
                        "All datasets must have compatible elements, but they have "
                        f"{self.parts[0].element_spec} and {part.element_spec}.",
                        fix="give all datasets the same structure and dtypes.",
                        origin=self.origin,
                    )
                )

    @property
    def element_spec(self) -> Any:
        specs = flatten(self.parts[0].element_spec, DATA)
        for part in self.parts[1:]:
            others = flatten(part.element_spec, DATA)
            pairs = zip(specs, others, strict=True)
            specs = [one.most_specific_common_supertype([two]) for one, two in pairs]
        return pack(self.parts[0].element_spec, specs, DATA)

    @property
    def size(self) -> int:
        # As in TensorFlow, one infinite dataset makes the whole infinite.
        return INFINITE if any(part.size == INFINITE for part in self.parts) else UNKNOWN


def _common(one: Node, two: Node) -> list[Any] | None:
    try:
        assert_same(one.element_spec, two.element_spec, DATA)
    except (TypeError, ValueError):
        return None
    pairs = zip(flatten(one.element_spec, DATA), flatten(two.element_spec, DATA), strict=True)
    common = [first.most_specific_common_supertype([second]) for first, second in pairs]
    return None if None in common else common


@final
@dataclass(frozen=True)
class Choose(_OneOfSeveral):
    """Takes each element from the dataset that `choices` selects."""

    choices: Node
    _: KW_ONLY
    stop_on_empty: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        spec = self.choices.element_spec
        if not TensorSpec([], dtypes.int64).is_compatible_with(spec):
            raise TypeError(
                described(
                    f"choice_dataset must hold int64 scalars, but holds {spec}.",
                    fix="create it with Dataset.range, or from an array of dtype int64.",
                    origin=self.origin,
                )
            )


@final
@dataclass(frozen=True)
class Sample(_OneOfSeveral):
    """Takes each element from a dataset drawn at random.

    The weights are fixed numbers, or a dataset with a vector of weights for each draw.
    """

    weights: tuple[float, ...] | Node
    seed: tuple[int, ...]
    _: KW_ONLY
    stop_on_empty: bool = False
    reshuffle: bool = False
    nesting: int = field(default_factory=nesting_now, compare=False, repr=False)
