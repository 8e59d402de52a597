"""Plan nodes that process elements one by one: map, filter, take_while, scan, enumerate, random keys."""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Final, cast, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import to_component
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import UNKNOWN, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.plan.checking import BY_VALUE
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import MappedFunction, Node, SameElements, UserFunction, once
from evenfeed.plan.ordering import nesting_now

_LARGEST_START: Final = 1 << 62  # counting from here on may exceed 64 bits


@final
@dataclass(frozen=True)
class Enumerate(Node):
    """Pairs each element with its index."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=None, rewinds=True)

    child: Node
    start: int

    @property
    def element_spec(self) -> Any:
        return TensorSpec([], dtypes.int64), self.child.element_spec

    @property
    def size(self) -> int:
        return self.child.size

    @property
    def can_fail(self) -> bool:
        return self.start > _LARGEST_START or self.child.can_fail


@final
@dataclass(frozen=True)
class WithKeys(Node):
    """Pairs each element with random bits that depend on the seed, the pass and the element's position.

    All passes have the same number if `counts_passes` is False.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential=None, passes_files=True, rewinds=True, random=True
    )

    child: Node
    seed: tuple[int, ...]
    _: KW_ONLY
    reshuffle: bool = True
    counts_passes: bool = field(default=True, compare=False, repr=False)
    nesting: int = field(default_factory=nesting_now, compare=False, repr=False)

    @property
    def element_spec(self) -> Any:
        # A tuple stays flat, so that a function receives its components as separate arguments.
        spec = self.child.element_spec
        parts = cast("tuple[Any, ...]", spec) if type(spec) is tuple else (spec,)
        return TensorSpec([2], dtypes.uint32), *parts

    @property
    def size(self) -> int:
        return self.child.size

    def of_worker(self, children: tuple[Node, ...], worker: int) -> Node:
        # Positions start at 0 on each worker, but random numbers must differ.
        return replace(super().of_worker(children, worker), seed=(*self.seed, worker))


AUTOTUNE: Final = -1  # TensorFlow's value


@final
@dataclass(frozen=True)
class Map(Node):
    """Applies a function to each element."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(elementwise=True, passes_files=True, rewinds=True)

    child: Node
    function: MappedFunction
    _: KW_ONLY
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    processes: bool = False

    def __post_init__(self) -> None:
        calls = self.num_parallel_calls
        if calls is not None and calls < 1 and calls != AUTOTUNE:
            raise InvalidArgumentError(
                f"num_parallel_calls must be at least 1, but got {calls}.",
                fix="pass the number of concurrent calls, or evenfeed.data.AUTOTUNE.",
                origin=self.origin,
            )

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec

    @property
    def size(self) -> int:
        return self.child.size

    @property
    @once
    def facts(self) -> NodeFacts:
        return replace(
            self.FACTS, works_ahead=self.processes or self.num_parallel_calls is not None
        )

    def why_sequential(self, *, selected: bool) -> str | None:
        del selected
        return self.function.why_sequential

    @property
    def can_fail(self) -> bool:
        return self.function.can_fail or self.child.can_fail


@dataclass(frozen=True)
class _Chosen(SameElements):
    """Keeps the elements that a predicate selects."""

    predicate: UserFunction

    def __post_init__(self) -> None:
        answer = self.predicate.output_spec
        if not _is_one_bool(answer):
            raise ValueError(
                described(
                    f"A predicate must return a scalar bool, but {self.predicate} returns {answer}.",
                    fix="return a comparison such as x > 0; reduce an array with jnp.all or jnp.any.",
                    origin=self.origin,
                )
            )

    @property
    def size(self) -> int:
        return UNKNOWN


@final
@dataclass(frozen=True)
class Filter(_Chosen):
    """Keeps the elements for which the predicate is True."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential=BY_VALUE,
        keeps_batch_size=True,
        passes_files=True,
        rewinds=True,
        counts_by_value=True,
    )


@final
@dataclass(frozen=True)
class TakeWhile(_Chosen):
    """Keeps elements until the predicate is first False."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=BY_VALUE, calls_in_order=True)


def _is_one_bool(spec: Any) -> bool:
    return (
        isinstance(spec, TensorSpec) and spec.dtype == dtypes.bool and spec.shape.rank in (0, None)
    )


@final
@dataclass(frozen=True, eq=False)
class Scan(Node):
    """Carries a state from element to element, and yields an output for each."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential="each element needs the state that the previous one left", calls_in_order=True
    )

    child: Node
    structure: Any
    initial: tuple[Any, ...]
    function: UserFunction

    @property
    def element_spec(self) -> Any:
        return self.function.output_spec[1]

    @property
    def carried_specs(self) -> list[TypeSpec]:
        """The specs of the state's components."""
        return flatten(self.function.output_spec[0], DATA)

    @property
    def size(self) -> int:
        return self.child.size


def parts_of_state(value: Any) -> tuple[Any, ...]:
    """Return the components of an initial state: arrays, and ragged and sparse tensors."""
    parts: list[Any] = flatten(value, DATA)
    composite = RaggedTensor | SparseTensor
    return tuple(part if isinstance(part, composite) else to_component(part) for part in parts)


def check_state(old: Any, new: Any, node: Any) -> None:
    """Raise unless a function returns a state with the structure and dtypes of its input state."""
    assert_same(old, new, DATA, names=("initial state", "returned state"))
    one: TypeSpec
    for one, two in zip(flatten(old, DATA), flatten(new, DATA), strict=True):
        if one.most_specific_common_supertype([two]) is None:
            raise TypeError(
                described(
                    f"The state must keep its type, but {one} becomes {two}.",
                    fix="cast the returned state, or start with a state of that dtype.",
                    origin=node.origin,
                )
            )


def state_of_scan(spec: Any) -> Any:
    """Return the spec of the new state, given that of what the function of a scan returns."""
    parts = cast("tuple[Any, ...]", spec) if type(spec) is tuple else ()
    if len(parts) == 2:
        return parts[0]
    raise TypeError(
        described(
            f"The function passed to scan must return (new state, output), but returns {spec}.",
            fix="return two values: the state for the next element, and the output for this one.",
        )
    )


def widened(old: Any, new: Any) -> Any:
    """Return the most specific specs that are compatible with both states."""
    pairs = zip(flatten(old, DATA), flatten(new, DATA), strict=True)
    return pack(old, [one.most_specific_common_supertype([two]) for one, two in pairs], DATA)
