"""One element out for each that comes in."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, cast, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import UNKNOWN, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.plan.node import Node, SameElements, UserFunction
from evenfeed.plan.ordering import Passes


@final
@dataclass(frozen=True)
class Enumerate(Node):
    """Puts a count before each element."""

    child: Node
    start: int

    @property
    def element_spec(self) -> Any:
        """A count, and the child's."""
        return TensorSpec([], dtypes.int64), self.child.element_spec

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size


@final
@dataclass(frozen=True)
class WithKeys(Node):
    """Puts random bits before each element, which follow from the seed, the pass and its position."""

    child: Node
    seed: tuple[int, ...]
    _: KW_ONLY
    reshuffle: bool = True
    passes: Passes = field(default_factory=Passes, compare=False, repr=False)

    @property
    def element_spec(self) -> Any:
        """Two words, and the child's; a tuple stays flat, so that a function gets its parts one by one."""
        spec = self.child.element_spec
        parts = cast("tuple[Any, ...]", spec) if type(spec) is tuple else (spec,)
        return TensorSpec([2], dtypes.uint32), *parts

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size


AUTOTUNE: Final = -1  # as TensorFlow's


@final
@dataclass(frozen=True)
class Map(Node):
    """What a function returns for each element."""

    child: Node
    function: UserFunction
    _: KW_ONLY
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    processes: bool = False

    def __post_init__(self) -> None:
        calls = self.num_parallel_calls
        if calls is not None and calls < 1 and calls != AUTOTUNE:
            raise InvalidArgumentError(
                f"num_parallel_calls must be at least 1, but got {calls}.",
                fix="pass the number of calls to run at a time, or evenfeed.data.AUTOTUNE.",
                origin=self.origin,
            )

    @property
    def element_spec(self) -> Any:
        """What the function returns."""
        return self.function.output_spec

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size


@dataclass(frozen=True)
class _Chosen(SameElements):
    """The elements of a child that a function chooses: how many, nobody knows before."""

    predicate: UserFunction

    def __post_init__(self) -> None:
        answer = self.predicate.output_spec
        if not _is_one_bool(answer):
            raise ValueError(
                described(
                    f"A predicate must return one bool, but {self.predicate} returns {answer}.",
                    fix="return a comparison such as x > 0; reduce an array with jnp.all or jnp.any.",
                    origin=self.origin,
                )
            )

    @property
    def size(self) -> int:
        """Unknown."""
        return UNKNOWN


@final
@dataclass(frozen=True)
class Filter(_Chosen):
    """The elements for which the predicate is true."""


@final
@dataclass(frozen=True)
class TakeWhile(_Chosen):
    """The elements before the first for which the predicate is false."""


def _is_one_bool(spec: Any) -> bool:
    return (
        isinstance(spec, TensorSpec) and spec.dtype == dtypes.bool and spec.shape.rank in (0, None)
    )


@final
@dataclass(frozen=True, eq=False)
class Scan(Node):
    """Carries a state along and yields an output for each element."""

    child: Node
    structure: Any
    initial: tuple[Array, ...]
    function: UserFunction

    @property
    def element_spec(self) -> Any:
        """What the function yields."""
        return self.function.output_spec[1]

    @property
    def carried_specs(self) -> list[TypeSpec]:
        """The specs of the parts that are carried along."""
        return flatten(self.function.output_spec[0], DATA)

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size


def check_state(old: Any, new: Any, node: Any) -> None:
    """Raise unless a function returns a state like the one it was given."""
    assert_same(old, new, DATA, names=("initial state", "returned state"))
    one: TypeSpec
    for one, two in zip(flatten(old, DATA), flatten(new, DATA), strict=True):
        if one.most_specific_common_supertype([two]) is None:
            raise TypeError(
                described(
                    f"The state must keep its type, but {one} becomes {two}.",
                    fix="cast the returned state, or begin with one of that dtype.",
                    origin=node.origin,
                )
            )


def widened(old: Any, new: Any) -> Any:
    """Return the specs of a state that may have both shapes."""
    pairs = zip(flatten(old, DATA), flatten(new, DATA), strict=True)
    return pack(old, [one.most_specific_common_supertype([two]) for one, two in pairs], DATA)
