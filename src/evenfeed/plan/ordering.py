"""Which elements come, and in what order."""

import threading
from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Final, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.node import SameElements


@dataclass(frozen=True)
class _Counted(SameElements):
    """A node whose number of elements follows from the child's."""

    @abstractmethod
    def size_of(self, size: int) -> int:
        """Return the number of elements where the child has `size`."""

    @property
    def size(self) -> int:
        """What follows from the child's."""
        return self.size_of(self.child.size)


@final
@dataclass(frozen=True)
class Repeat(_Counted):
    """Plays the child again and again; a negative count never ends."""

    count: int

    def size_of(self, size: int) -> int:
        """The child's size times the count; nothing stays nothing, however often."""
        if self.count == 0 or size == 0:
            return 0
        if self.count < 0 or size == INFINITE:
            return INFINITE
        return UNKNOWN if size == UNKNOWN else size * self.count


@final
@dataclass(frozen=True)
class Take(_Counted):
    """The first elements; all of them where the count is negative."""

    count: int

    def size_of(self, size: int) -> int:
        """The count, where the child has that many."""
        if self.count < 0 or size == UNKNOWN:
            return 0 if self.count == 0 else size
        return self.count if size == INFINITE else min(self.count, size)


@final
@dataclass(frozen=True)
class Skip(_Counted):
    """All but the first elements; none of them where the count is negative."""

    count: int

    def size_of(self, size: int) -> int:
        """What is left."""
        if self.count < 0:
            return 0
        return size if size < 0 else max(0, size - self.count)


@final
@dataclass(frozen=True)
class Shard(_Counted):
    """Every `num_shards`-th element from `index` on."""

    num_shards: int
    index: int

    def __post_init__(self) -> None:
        if self.num_shards < 1:
            self._refuse(f"num_shards must be at least 1, but got {self.num_shards}.")
        if not 0 <= self.index < self.num_shards:
            self._refuse(
                f"index must be at least 0 and below num_shards, which is {self.num_shards}, "
                f"but got {self.index}."
            )

    def _refuse(self, what: str) -> None:
        raise InvalidArgumentError(
            what, fix="shard(num_shards=4, index=0) keeps the first of four.", origin=self.origin
        )

    def size_of(self, size: int) -> int:
        """The child's size over the number of shards, one more for the first ones."""
        return size if size < 0 else max(0, -(-(size - self.index) // self.num_shards))


SHARD_HINT: Final = -1  # TensorFlow's


@final
@dataclass(frozen=True)
class HintedShard(_Counted):
    """The place for a worker's shard: distribution puts a Shard here, under AutoShardPolicy.HINT."""

    def size_of(self, size: int) -> int:
        """Not known before, unless there is nothing or no end."""
        return size if size in (0, INFINITE) else UNKNOWN


class _Thread(threading.local):
    """How many functions of datasets are at work in a thread, one inside the other."""

    depth = 0


_making: Final = _Thread()


@contextmanager
def made_by_function(depth: int | None = None) -> Generator[None]:
    """Note that what is made here is made by a function of a dataset.

    Args:
        depth: How many functions are at work then, one inside the other; by default one more than now.
    """
    before = _making.depth
    _making.depth = before + 1 if depth is None else depth
    try:
        yield
    finally:
        _making.depth = before


@final
class Passes:
    """Counts the passes over a dataset, so that each can have a random order of its own.

    Args:
        counted: False gives all passes one number, so that they are alike.
        depth: How many functions of datasets were at work when the dataset was made; those that are now.

    Attributes:
        depth: The same. It tells what a function makes from what it was given.
    """

    def __init__(self, *, counted: bool = True, depth: int | None = None) -> None:
        self.depth = _making.depth if depth is None else depth
        self._counted = counted
        self._next = 0
        self._lock = threading.Lock()

    def take(self) -> int:
        """Return the number of a new pass."""
        with self._lock:
            number = self._next
            self._next += self._counted
            return number

    def peek(self) -> int:
        """Return the number that the next pass will have."""
        return self._next

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(
            Passes, counted=self._counted, depth=self.depth
        ), ()  # elsewhere, passes are counted anew


@final
@dataclass(frozen=True)
class Shuffle(SameElements):
    """Elements in a random order, within a buffer.

    Every pass over the data has a number: where each is to have an order of its own, it is part of the
    seed.
    """

    buffer_size: int
    seed: tuple[int, ...]
    _: KW_ONLY
    reshuffle: bool = True
    passes: "Passes" = field(default_factory=Passes, compare=False, repr=False)

    def __post_init__(self) -> None:
        # The cardinality of a dataset is taken too, also where it is unknown: a buffer of all elements.
        if self.buffer_size < 1 and self.buffer_size != UNKNOWN:
            raise InvalidArgumentError(
                f"buffer_size must be at least 1, but got {self.buffer_size}.",
                fix="pass how many elements to choose among; the dataset's cardinality() for all.",
                origin=self.origin,
            )
        if self.buffer_size == UNKNOWN and self.child.size == INFINITE:
            raise InvalidArgumentError(
                "A dataset without end cannot be shuffled as a whole.",
                fix="pass how many elements to choose among, or shuffle before you repeat.",
                origin=self.origin,
            )
