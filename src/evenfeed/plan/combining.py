"""Plan nodes that combine datasets: zip and concatenate."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import INFINITE, UNKNOWN, TypeSpec
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node, shared_below
from evenfeed.plan.ordering import SELECTION

# The parts of a longer concatenation are not searched one by one before the first is read.
MANY_PARTS: Final = 10_000


@final
@dataclass(frozen=True)
class Zip(Node):
    """Combines the elements of several datasets, until one of them ends."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        elementwise=True, sequential=None, keeps_batch_size=True, passes_files=True, rewinds=True
    )

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

    FACTS: ClassVar[NodeFacts] = SELECTION

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

    def why_sequential(self, *, selected: bool) -> str | None:
        del selected
        if self.part_count <= MANY_PARTS:
            return None
        kept = any(
            node.facts.keeps_passes or node.facts.random for node in shared_below(self.walk())
        )
        return "each of its many parts has an order of its own" if kept else None

    @property
    def part_count(self) -> int:
        return self.first.part_count + self.second.part_count

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
