"""Plan nodes that choose a dataset for each element (choose, sample), and the infinite sources that drive them."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Final, final

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import nesting_now

_FORWARD: Final = "it can only count forward"
_CHOSEN: Final = "the next dataset is chosen while reading"


@final
@dataclass(frozen=True)
class Counter(Node):
    """Counts from `start` in steps of `step`, infinitely; integers wrap around in their dtype."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=_FORWARD)

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

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=_FORWARD, random=True)

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

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=_CHOSEN, method="choose_from_datasets")

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

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential=_CHOSEN, random=True, method="sample_from_datasets"
    )

    weights: tuple[float, ...] | Node
    seed: tuple[int, ...]
    _: KW_ONLY
    stop_on_empty: bool = False
    reshuffle: bool = False
    nesting: int = field(default_factory=nesting_now, compare=False, repr=False)
