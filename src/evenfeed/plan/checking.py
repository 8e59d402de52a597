"""Plan nodes for unique, ignore_errors and assert_cardinality."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Final, final

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node, SameElements

BY_VALUE: Final = "which elements remain is known only after they are read"


@dataclass(frozen=True)
class _SomeOfThem(SameElements):
    """A node that may drop some of the child's elements."""

    @property
    def size(self) -> int:
        return UNKNOWN


@final
@dataclass(frozen=True)
class Unique(_SomeOfThem):
    """Drops repeated elements, which must have a single component of integers or strings."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=BY_VALUE, replays=True)

    def __post_init__(self) -> None:
        specs = flatten(self.child.element_spec, DATA)
        for spec in specs:
            known = isinstance(spec, TensorSpec)
            if not known or spec.dtype not in (dtypes.int32, dtypes.int64, dtypes.string):
                raise TypeError(
                    described(
                        f"unique supports int32, int64 and string, but the elements hold {spec}.",
                        fix="map the elements to a key of one of those dtypes first.",
                        origin=self.origin,
                    )
                )
        if len(specs) != 1:
            raise InvalidArgumentError(
                f"unique needs elements with one component, but these have {len(specs)}.",
                fix="map the elements to a single component first.",
                origin=self.origin,
            )


@final
@dataclass(frozen=True)
class IgnoreErrors(_SomeOfThem):
    """Drops elements that raise an error."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=BY_VALUE)

    _: KW_ONLY
    log_warning: bool = False
    max_total: int | None = None
    max_consecutive: int | None = None

    def __post_init__(self) -> None:
        for name, most in (
            ("max_total", self.max_total),
            ("max_consecutive", self.max_consecutive),
        ):
            if most is not None and most < 0:
                raise InvalidArgumentError(
                    f"{name} must be at least 0, but got {most}.",
                    fix="pass the number of errors to ignore, or None for all.",
                    origin=self.origin,
                )


@final
@dataclass(frozen=True)
class AssertCardinality(_SomeOfThem):
    """Asserts the number of elements; reading raises an error if it is wrong."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(keeps_batch_size=True, passes_files=True)

    count: int

    def __post_init__(self) -> None:
        if self.count < INFINITE:
            raise InvalidArgumentError(
                f"An asserted cardinality must be at least 0 or infinite, but got {self.count}.",
                fix="pass the number of elements, or evenfeed.data.INFINITE_CARDINALITY.",
                origin=self.origin,
            )

    @property
    def size(self) -> int:
        return self.count

    def of_worker(self, children: tuple[Node, ...], worker: int) -> Node:
        del worker
        return children[0]  # It asserts the number of rows of all files.
