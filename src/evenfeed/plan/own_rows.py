"""The part of each global batch that one worker reads."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.batch_split import Share
from evenfeed.core.specs import INFINITE, TensorSpec
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node, SameElements


@final
@dataclass(frozen=True)
class OwnRows(SameElements):
    """Those of the elements that a worker will find in its part of each batch of `batch_size`.

    Every worker gets some of a full batch: else an endless dataset might have none for it.
    """

    batch_size: int
    share: Share
    _: KW_ONLY
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        if not gives_all_some(self.share, self.batch_size):
            raise ValueError("a worker gets no row of a full batch")

    @property
    def size(self) -> int:
        """The sum over all batches, the last of which may be short."""
        return self.size_of(self.child.size)

    def size_of(self, size: int) -> int:
        """Return the number of elements where the child has `size`."""
        if size < 0:
            return size
        full, rest = divmod(size, self.batch_size)
        last = 0 if self.drop_remainder else self.share.own(rest)
        return full * self.share.own(self.batch_size) + last


@final
@dataclass(frozen=True)
class OwnBatches(Node):
    """A worker's part of each batch, behind the number of rows that the whole batch has.

    The child gives the elements of `OwnRows`, which stands somewhere below, one for one.
    """

    child: Node

    @property
    def rows(self) -> OwnRows:
        """What chooses the rows."""
        node = self.child
        while not isinstance(node, OwnRows):
            node = node.children[0]
        return node

    @property
    def element_spec(self) -> Any:
        """How many rows the batch has on all workers, and the part."""
        part = Batch(self.child, 1, origin=None).element_spec
        return TensorSpec([], dtypes.int64), part

    @property
    def size(self) -> int:
        """The number of batches."""
        rows = self.rows
        batches = Batch(
            rows.child, rows.batch_size, drop_remainder=rows.drop_remainder, origin=None
        )
        return batches.size


def gives_all_some(share: Share, batch_size: int) -> bool:
    """Tell whether each worker gets rows of a full batch."""
    # The last worker's first piece is the last of all that decides.
    return share._replace(worker=share.workers - 1).own(batch_size) > 0


def length_of(rows: OwnRows, size: int, number: int) -> int:
    """Return how many rows a batch has where the child of `rows` has `size`; 0 where there is none."""
    if size == INFINITE:
        return rows.batch_size
    length = max(0, min(rows.batch_size, size - number * rows.batch_size))
    return 0 if rows.drop_remainder and length < rows.batch_size else length
