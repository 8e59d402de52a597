"""Rows of files."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import UNKNOWN
from evenfeed.core.structure import DATA, assert_same, flatten
from evenfeed.formats.reader import DataFile
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.node import Node


@final
@dataclass(frozen=True)
class Files(Node):
    """The rows of files, one file after the other, or one row of each in turn.

    Which file holds which rows, and in which of its bytes, stands here: a shard by files is a node with
    fewer of them.

    `as_reader` is true for TensorFlow's readers: they do not tell a size before they are read, though rows
    may have positions, and AUTO shards by file below them.
    """

    files: tuple[DataFile, ...]
    spec: Any
    _: KW_ONLY
    in_turn: bool = False
    as_reader: bool = False

    def __post_init__(self) -> None:
        if self.in_turn and self.size == UNKNOWN:
            raise ValueError("files are read in turn only where their rows are known")

    @property
    def element_spec(self) -> Any:
        """What the files hold."""
        return self.spec

    @property
    def size(self) -> int:
        """All rows; unknown where one file does not tell."""
        counts = None if self.as_reader else self.counts
        return UNKNOWN if counts is None else sum(counts)

    @property
    def counts(self) -> list[int] | None:
        """How many rows each file has now; None where one does not tell."""
        return _all([file.rows for file in self.files])

    def counted(self) -> list[int] | None:
        """Return how many rows each file has, if need be by a look into it; None where one has no positions."""
        return _all([file.counted() for file in self.files])


def _all(counts: list[int | None]) -> list[int] | None:
    known = [count for count in counts if count is not None]
    return known if len(known) == len(counts) else None


def reads_files(plan: Node) -> bool:
    """Tell whether one of TensorFlow's readers is in a plan, also inside flat_map or interleave."""
    return any(_reads(node) for node in plan.walk())


def _reads(node: Node) -> bool:
    match node:
        case Files():
            return node.as_reader
        case FlatMap() | Interleave():
            return reads_files(node.function.stand_in)
        case _:
            return False


def check_read(plan: Node, spec: Any) -> None:
    """Raise unless a plan that a user made to read files gives what they hold."""
    assert_same(spec, plan.element_spec, DATA, names=("saved elements", "elements that are read"))
    for saved, read in zip(flatten(spec, DATA), flatten(plan.element_spec, DATA), strict=True):
        if not saved.is_compatible_with(read):
            raise InvalidArgumentError(
                f"reader_func makes elements with {read}, where {saved} was saved.",
                fix="let reader_func choose the order, and map the dataset that load returns.",
                origin=plan.origin,
            )
