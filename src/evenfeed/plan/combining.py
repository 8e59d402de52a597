"""Several datasets as one."""

from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, assert_same, flatten, pack
from evenfeed.plan.node import Node


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
