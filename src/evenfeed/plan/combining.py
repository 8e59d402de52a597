"""Several datasets as one."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Passes


@final
@dataclass(frozen=True)
class Zip(Node):
    """Elements of several datasets side by side, until one of them ends."""

    structure: Any
    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidArgumentError(
                "A zip needs at least one dataset.",
                fix="pass datasets, or a tuple or dict of them.",
                origin=self.origin,
            )

    @property
    def element_spec(self) -> Any:
        """The parts' specs, in the structure that was given."""
        return pack(self.structure, [part.element_spec for part in self.parts], DATA)

    @property
    def size(self) -> int:
        """The smallest of the parts'; unknown where one is."""
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
                        f"Datasets of unlike elements cannot be concatenated: {one} and {two}.",
                        fix="give both the same dtypes before you concatenate them.",
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
        """What both have in common: dimensions that differ are unknown."""
        common = [one.most_specific_common_supertype([two]) for one, two in self._pairs()]
        return pack(self.first.element_spec, common, DATA)

    @property
    def depth(self) -> int:
        """That of the deepest part: a concatenation of concatenations is read as one row of parts."""
        parts = [(part, isinstance(part, Concatenate)) for part in self.children]
        return max(part.depth + (not in_row) for part, in_row in parts)

    @property
    def size(self) -> int:
        """Both sizes together."""
        sizes = {self.first.size, self.second.size}
        if INFINITE in sizes:
            return INFINITE
        return UNKNOWN if UNKNOWN in sizes else self.first.size + self.second.size


@final
@dataclass(frozen=True)
class Counter(Node):
    """Counts from `start` by `step` without end; whole numbers wrap around in their dtype."""

    start: int | float
    step: int | float = 1
    _: KW_ONLY
    dtype: DType = dtypes.int64

    @property
    def element_spec(self) -> TensorSpec:
        """A scalar."""
        return TensorSpec([], self.dtype)

    @property
    def size(self) -> int:
        """Infinite."""
        return INFINITE


@final
@dataclass(frozen=True)
class Random(Node):
    """Random whole numbers of 32 bits without end, the same in each pass unless they are to differ."""

    seed: tuple[int, ...]
    _: KW_ONLY
    reshuffle: bool = False
    passes: Passes = field(default_factory=Passes, compare=False, repr=False)

    @property
    def element_spec(self) -> TensorSpec:
        """A scalar."""
        return TensorSpec([], dtypes.int64)

    @property
    def size(self) -> int:
        """Infinite."""
        return INFINITE


@dataclass(frozen=True)
class _OneOfSeveral(Node):
    """Elements of several datasets, in an order that something else decides."""

    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError(
                described("At least one dataset is needed, but there is none.", origin=self.origin)
            )
        for part in self.parts[1:]:
            if _common(self.parts[0], part) is None:
                raise TypeError(
                    described(
                        "All datasets must have elements alike, but they have "
                        f"{self.parts[0].element_spec} and {part.element_spec}.",
                        fix="give all the same structure and dtypes.",
                        origin=self.origin,
                    )
                )

    @property
    def element_spec(self) -> Any:
        """What all have in common: dimensions that differ are unknown."""
        specs = flatten(self.parts[0].element_spec, DATA)
        for part in self.parts[1:]:
            others = flatten(part.element_spec, DATA)
            pairs = zip(specs, others, strict=True)
            specs = [one.most_specific_common_supertype([two]) for one, two in pairs]
        return pack(self.parts[0].element_spec, specs, DATA)

    @property
    def size(self) -> int:
        """Infinite where one of them is, as TensorFlow says; else not known."""
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
    """The next element of the dataset that each choice names."""

    choices: Node
    _: KW_ONLY
    stop_on_empty: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        spec = self.choices.element_spec
        if not TensorSpec([], dtypes.int64).is_compatible_with(spec):
            raise TypeError(
                described(
                    f"Choices must be scalars of int64, but are {spec}.",
                    fix="make them with Dataset.range, or from an array of dtype int64.",
                    origin=self.origin,
                )
            )


@final
@dataclass(frozen=True)
class Sample(_OneOfSeveral):
    """The next element of a dataset that is drawn at random, by weight.

    The weights are numbers that hold for all draws, or a dataset with a vector for each of them.
    """

    weights: tuple[float, ...] | Node
    seed: tuple[int, ...]
    _: KW_ONLY
    stop_on_empty: bool = False
    reshuffle: bool = False
    passes: Passes = field(default_factory=Passes, compare=False, repr=False)
