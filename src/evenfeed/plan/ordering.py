"""Plan nodes that select or reorder elements: repeat, take, skip, shard, shuffle."""

import threading
from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Final, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import SameElements

# The facts of a node that selects or reorders elements by position.
SELECTION: Final = NodeFacts(
    by_position=True,
    sequential=None,
    keeps_batch_size=True,
    passes_files=True,
    rewinds=True,
)


@final
class OpenCount(int):
    """A count that depends on the element from which a dataset is made, in a plan with holes (`plan/templates.py`).

    Attributes:
        source: The part of the element.
        maker: Identifies the function that makes the dataset.
    """

    source: int
    maker: object

    @classmethod
    def of(cls, source: int, maker: object) -> "OpenCount":
        """Return the count for a part. As an int it is 1, which no check rejects."""
        made = cls(1)
        made.source, made.maker = source, maker
        return made


@dataclass(frozen=True)
class _Counted(SameElements):
    """Selects elements by position, so that its size is a function of the child's size."""

    FACTS: ClassVar[NodeFacts] = SELECTION

    @abstractmethod
    def size_of(self, size: int) -> int:
        """Return the number of elements if the child has `size`."""

    @property
    def size(self) -> int:
        return self.size_of(self.child.size)


@dataclass(frozen=True)
class _CountedByArgument(_Counted):
    """Selects elements by a count that the user passes."""

    count: int

    @property
    def size(self) -> int:
        return UNKNOWN if isinstance(self.count, OpenCount) else super().size


@final
@dataclass(frozen=True)
class Repeat(_CountedByArgument):
    """Repeats the child `count` times; infinitely if the count is negative."""

    def size_of(self, size: int) -> int:
        if self.count == 0 or size == 0:
            return 0
        if self.count < 0 or size == INFINITE:
            return INFINITE
        return UNKNOWN if size == UNKNOWN else size * self.count

    @property
    def row_count(self) -> int:
        return self.size_of(self.child.row_count)

    @property
    def arguments_shown(self) -> list[str] | None:
        return [] if self.count < 0 else None


@final
@dataclass(frozen=True)
class Take(_CountedByArgument):
    """Keeps the first `count` elements; all if the count is negative."""

    def size_of(self, size: int) -> int:
        if self.count < 0 or size == UNKNOWN:
            return 0 if self.count == 0 else size
        return self.count if size == INFINITE else min(self.count, size)


@final
@dataclass(frozen=True)
class Skip(_CountedByArgument):
    """Skips the first `count` elements; all if the count is negative."""

    FACTS: ClassVar[NodeFacts] = replace(SELECTION, prefers_positions=True)

    def size_of(self, size: int) -> int:
        if self.count < 0:
            return 0
        return size if size < 0 else max(0, size - self.count)


@final
@dataclass(frozen=True)
class Shard(_Counted):
    """Keeps every `num_shards`-th element, starting at `index`."""

    FACTS: ClassVar[NodeFacts] = replace(SELECTION, prefers_positions=True)

    num_shards: int
    index: int

    def __post_init__(self) -> None:
        if self.num_shards < 1:
            self._refuse(f"num_shards must be at least 1, but got {self.num_shards}.")
        if not 0 <= self.index < self.num_shards:
            self._refuse(
                f"index must be at least 0 and less than num_shards ({self.num_shards}), "
                f"but got {self.index}."
            )

    def _refuse(self, what: str) -> None:
        raise InvalidArgumentError(
            what,
            fix="pass for example shard(num_shards=4, index=0) for the first of four shards.",
            origin=self.origin,
        )

    def size_of(self, size: int) -> int:
        return size if size < 0 else max(0, -(-(size - self.index) // self.num_shards))


SHARD_HINT: Final = -1  # TensorFlow's value


@final
@dataclass(frozen=True)
class HintedShard(_Counted):
    """A placeholder that a distributed dataset replaces with a worker's Shard, under AutoShardPolicy.HINT."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(method="shard")

    def size_of(self, size: int) -> int:
        return size if size in (0, INFINITE) else UNKNOWN


class _Thread(threading.local):
    """The nesting depth of running dataset functions in a thread."""

    depth = 0


_making: Final = _Thread()


@contextmanager
def made_by_function(depth: int | None = None) -> Generator[None]:
    """Mark datasets created in this context as created inside a dataset function.

    Args:
        depth: The nesting depth of dataset functions; by default one more than the current depth.
    """
    before = _making.depth
    _making.depth = before + 1 if depth is None else depth
    try:
        yield
    finally:
        _making.depth = before


def nesting_now() -> int:
    """Return the nesting depth of the dataset functions that this thread runs."""
    return _making.depth


@final
@dataclass(frozen=True)
class Shuffle(SameElements):
    """Shuffles elements within a buffer.

    Passes are counted, and with `reshuffle` the number of the pass is part of the seed. `nesting` tells datasets that
    a function creates from those that it captures.
    """

    FACTS: ClassVar[NodeFacts] = replace(
        SELECTION, prefers_positions=True, rewinds=False, replays=True, random=True
    )

    buffer_size: int
    seed: tuple[int, ...]
    _: KW_ONLY
    reshuffle: bool = True
    nesting: int = field(default_factory=nesting_now, compare=False, repr=False)

    def __post_init__(self) -> None:
        # A buffer_size of UNKNOWN_CARDINALITY, as cardinality() may return, means a buffer of all elements.
        if self.buffer_size < 1 and self.buffer_size != UNKNOWN:
            raise InvalidArgumentError(
                f"buffer_size must be at least 1, but got {self.buffer_size}.",
                fix="pass the number of elements to draw from, or the dataset's cardinality() for all.",
                origin=self.origin,
            )
        if self.buffer_size == UNKNOWN and self.child.size == INFINITE:
            raise InvalidArgumentError(
                "An infinite dataset cannot be shuffled as a whole.",
                fix="pass the number of elements to draw from, or call shuffle before repeat.",
                origin=self.origin,
            )
