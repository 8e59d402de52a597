"""Plan nodes that read only one worker's rows of each global batch."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, final

from evenfeed.core import dtypes
from evenfeed.core.batch_split import RowSplit
from evenfeed.core.specs import INFINITE, TensorSpec
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node, SameElements


@final
@dataclass(frozen=True)
class OwnRows(SameElements):
    """Keeps the elements that belong to a worker's part of each batch of `batch_size`.

    Every worker gets at least one row of a full batch; otherwise it might search an infinite dataset forever.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        by_position=True, prefers_positions=True, sequential=None
    )

    batch_size: int
    share: RowSplit
    _: KW_ONLY
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        if not self.share.gives_all_some(self.batch_size):
            raise ValueError("a worker gets no row of a full batch")

    @property
    def size(self) -> int:
        return self.size_of(self.child.size)

    def size_of(self, size: int) -> int:
        """Return the number of elements if the child has `size`."""
        if size < 0:
            return size
        full, rest = divmod(size, self.batch_size)
        last = 0 if self.drop_remainder else self.share.own(rest)
        return full * self.share.own(self.batch_size) + last


@final
@dataclass(frozen=True)
class OwnBatches(Node):
    """Yields pairs: the number of rows of a global batch, and a worker's part of it.

    The child yields one element for each element of the `OwnRows` below it. A position counts global batches, so it is
    the same for all workers, whatever their number.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=None, addressed_since=4)

    child: Node

    def why_sequential(self, *, selected: bool) -> str | None:
        if not isinstance(self.child, OwnRows):
            return "a worker's rows are computed one after another"
        return self.batches.why_sequential(selected=selected)

    @property
    def rows(self) -> OwnRows:
        """The node below that selects the rows."""
        node = self.child
        while not isinstance(node, OwnRows):
            node = node.children[0]
        return node

    @property
    def element_spec(self) -> Any:
        part = Batch(self.child, 1, origin=None).element_spec
        return TensorSpec([], dtypes.int64), part

    @property
    def size(self) -> int:
        return self.batches.size

    @property
    def batches(self) -> Batch:
        """The global batches."""
        rows = self.rows
        return Batch(rows.child, rows.batch_size, drop_remainder=rows.drop_remainder, origin=None)

    @property
    def can_fail(self) -> bool:
        return self.batches.can_fail


def length_of(rows: OwnRows, size: int, number: int) -> int:
    """Return the number of rows of global batch `number` if the child of `rows` has `size` elements; 0 past the end."""
    if size == INFINITE:
        return rows.batch_size
    length = max(0, min(rows.batch_size, size - number * rows.batch_size))
    return 0 if rows.drop_remainder and length < rows.batch_size else length
