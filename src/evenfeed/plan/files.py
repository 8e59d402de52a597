"""Rows of files."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

from evenfeed.core.cardinality import UNKNOWN
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.structure import DATA, assert_same, flatten
from evenfeed.formats.reader import DataFile
from evenfeed.plan.node import Node


@final
@dataclass(frozen=True)
class Files(Node):
    """The rows of files, one file after the other, or one row of each in turn.

    Which file holds which rows, and in which of its bytes, stands here: a shard by files is a node with
    fewer of them.
    """

    files: tuple[DataFile, ...]
    spec: Any
    _: KW_ONLY
    in_turn: bool = False

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
        rows = [file.rows for file in self.files]
        known = [count for count in rows if count is not None]
        return sum(known) if len(known) == len(rows) else UNKNOWN


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
