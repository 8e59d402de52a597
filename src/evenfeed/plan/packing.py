"""The plan node for pack: short rows of tokens, side by side in sequences of a fixed length."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Final, TypeAlias, cast, final

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.callsite import Origin
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, is_branch, opened, paths
from evenfeed.plan.batching import padding_values_of
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node
from evenfeed.plan.sources import parts_up_to

FIRST_FIT: Final = "first_fit"
CONCAT: Final = "concat"
STRATEGIES: Final = (FIRST_FIT, CONCAT)

SPLIT: Final = "split"
TRUNCATE: Final = "truncate"
ERROR: Final = "error"
TOO_LONG: Final = (SPLIT, TRUNCATE, ERROR)

# The memory of what was free when each was opened grows with the square.
_MOST_BINS: Final = 1024

# The tokens of a component, their segment ids and their positions.
Triple: TypeAlias = tuple[Any, Any, Any]


@final
@dataclass(frozen=True, eq=False)
class Pack(Node):
    """Puts rows of tokens side by side in sequences of a fixed length.

    `lengths` and `values`, which fill what is left of a sequence, have an item for each component.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential="each element is made of several", passes_files=True, counts_by_value=True
    )

    child: Node
    lengths: tuple[int, ...]
    strategy: str
    num_bins: int
    _: KW_ONLY
    values: tuple[Array, ...] = field(repr=False)
    too_long: str = SPLIT
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        _ = self.element_spec  # raises if rows are not vectors, or a name is taken
        if not self.lengths:
            raise TypeError(described("pack() needs rows of tokens, but the elements are empty."))
        _check_choice(self.strategy, "strategy", STRATEGIES, self.origin)
        _check_choice(self.too_long, "too_long", TOO_LONG, self.origin)
        _check_number(min(self.lengths), "length", "tokens in a packed sequence", self.origin)
        _check_number(self.num_bins, "num_bins", "sequences to fill at the same time", self.origin)
        if self.num_bins > _MOST_BINS:
            raise InvalidArgumentError(
                f"num_bins must be at most {_MOST_BINS:,}, but got {self.num_bins:,}.",
                fix="pass 64; more than some hundred hardly save padding.",
                origin=self.origin,
            )
        if self.strategy == CONCAT and len(set(self.lengths)) > 1:
            raise InvalidArgumentError(
                'strategy="concat" cuts all components at the same tokens, but they have the lengths '
                f"{list(self.lengths)}.",
                fix='pass one length, or strategy="first_fit".',
                origin=self.origin,
            )

    @property
    def element_spec(self) -> Any:
        specs = map(packable, flatten(self.child.element_spec, DATA))
        pairs = zip(self.lengths, specs, strict=True)
        triples = (_specs_of(length, spec) for length, spec in pairs)
        return _with_ids(self.child.element_spec, triples)

    @property
    def columns(self) -> list[tuple[int, int]]:
        """For each column of an element, its component, and which part of the triple it is: 0, 1 or 2."""
        parts = range(len(self.lengths))
        triples = ((_Place(part, 0), _Place(part, 1), _Place(part, 2)) for part in parts)
        return [
            (place.part, place.kind)
            for place in flatten(_with_ids(self.child.element_spec, triples), DATA)
        ]

    @property
    def size(self) -> int:
        return INFINITE if self.child.size == INFINITE else UNKNOWN

    @property
    def arguments_shown(self) -> list[str]:
        same = len(set(self.lengths)) == 1
        shown = [str(self.lengths[0] if same else list(self.lengths)), f"{self.strategy!r}"]
        shown += [f"num_bins={self.num_bins}"] if self.strategy == FIRST_FIT else []
        shown += [f"too_long={self.too_long!r}"] if self.too_long != SPLIT else []
        return shown + (["drop_remainder=True"] if self.drop_remainder else [])


@final
class _Place:
    """Where a column stands: the component, and the part of its triple."""

    def __init__(self, part: int, kind: int) -> None:
        self.part = part
        self.kind = kind


def _specs_of(length: int, spec: TensorSpec) -> Triple:
    ids = TensorSpec([length], dtypes.int32)
    return TensorSpec([length], spec.dtype), ids, ids


def lengths_of(child: Node, length: Any) -> tuple[int, ...]:
    """Return the length of packed sequences for each component; `length` is one number, or one for each."""
    spec = child.element_spec
    parts = flatten(spec, DATA)
    given = parts_up_to(spec, length) if is_branch(length, DATA) else [length] * len(parts)
    return tuple(whole_number(value, "length") for value in given)


def fills_of(child: Node, padding_values: Any) -> tuple[Array, ...]:
    """Return what to pad each component with."""
    specs = [packable(part) for part in flatten(child.element_spec, DATA)]
    return padding_values_of(child, padding_values, specs)


def _check_choice(value: str, name: str, known: Sequence[str], origin: Origin | None) -> None:
    if value not in known:
        raise InvalidArgumentError(
            f"{name} must be {' or '.join(map(repr, known))}, but got {shortened(value)}.",
            fix=f"pass {name}={known[0]!r}.",
            origin=origin,
        )


def _check_number(value: int, name: str, of_what: str, origin: Origin | None) -> None:
    if value < 1:
        raise InvalidArgumentError(
            f"{name} must be at least 1, but got {value}.",
            fix=f"pass the number of {of_what}.",
            origin=origin,
        )


def packable(spec: TypeSpec) -> TensorSpec:
    """Raise unless a spec is that of a vector, possibly of unknown rank; return it as a TensorSpec."""
    found = spec.as_argument() if isinstance(spec, RaggedTensorSpec) else spec
    if not isinstance(found, TensorSpec) or found.shape.rank not in (None, 1):
        raise TypeError(
            described(
                f"pack() needs rows of tokens, which are vectors, but the elements hold {spec}.",
                fix=_towards_vectors(spec),
            )
        )
    return found


def _towards_vectors(spec: TypeSpec) -> str:
    if not isinstance(spec, TensorSpec) or spec.shape.rank != 0:
        return "call unbatch() on batches of rows, and leave out other parts in a map."
    if spec.dtype == dtypes.string:
        return "turn the texts into tokens in a map first, and leave out other parts in it."
    return (
        "return the tokens of a row as an array, np.array(tokens, np.int32), from the map before: a list is a "
        "tuple of its numbers. Leave out other parts in it."
    )


def _with_ids(structure: Any, triples: Iterator[Triple]) -> Any:
    """Return a structure with a triple in place of each component.

    In a dict, the segment ids and positions of the component `name` become `name_segment_ids` and `name_positions`.
    """
    if isinstance(structure, Mapping):
        return _dict_with_ids(cast("Mapping[Any, Any]", structure), triples)
    branch = opened(structure, DATA)
    if branch is None:
        return next(triples)
    return branch.rebuild([_with_ids(part, triples) for part in branch.parts])


def _dict_with_ids(structure: Mapping[Any, Any], triples: Iterator[Triple]) -> dict[Any, Any]:
    found = {key: _with_ids(structure[key], triples) for key in sorted(structure)}
    packed: dict[Any, Any] = {}
    for key in structure:  # in the order of the user
        if is_branch(structure[key], DATA) or not isinstance(key, str):
            packed[key] = found[key]
            continue
        packed[key], ids, positions = found[key]
        for name, value in ((f"{key}_segment_ids", ids), (f"{key}_positions", positions)):
            if name in structure:
                raise ValueError(
                    described(
                        f"pack() adds {name!r} to each element, but the elements have a part of this name.",
                        fix=f"rename it, or leave it out in a map; the parts are {', '.join(paths(structure, DATA))}.",
                    )
                )
            packed[name] = value
    return packed
