"""Which elements come, and in what order."""

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from threading import Lock
from typing import Any, final

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.node import SameElements


@final
@dataclass(frozen=True)
class Repeat(SameElements):
    """Plays the child again and again; a negative count never ends."""

    count: int

    @property
    def size(self) -> int:
        """The child's size times the count; nothing stays nothing, however often."""
        if self.count == 0 or self.child.size == 0:
            return 0
        if self.count < 0 or self.child.size == INFINITE:
            return INFINITE
        return UNKNOWN if self.child.size == UNKNOWN else self.child.size * self.count


@final
@dataclass(frozen=True)
class Take(SameElements):
    """The first elements; all of them where the count is negative."""

    count: int

    @property
    def size(self) -> int:
        """The count, where the child has that many."""
        size = self.child.size
        if self.count < 0 or size == UNKNOWN:
            return 0 if self.count == 0 else size
        return self.count if size == INFINITE else min(self.count, size)


@final
@dataclass(frozen=True)
class Skip(SameElements):
    """All but the first elements; none of them where the count is negative."""

    count: int

    @property
    def size(self) -> int:
        """What is left."""
        if self.count < 0:
            return 0
        return self.child.size if self.child.size < 0 else max(0, self.child.size - self.count)


@final
@dataclass(frozen=True)
class Shard(SameElements):
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

    @property
    def size(self) -> int:
        """The child's size over the number of shards, one more for the first ones."""
        if self.child.size < 0:
            return self.child.size
        return max(0, -(-(self.child.size - self.index) // self.num_shards))


@final
class Passes:
    """Counts the passes over a dataset, so that each can have a random order of its own.

    Args:
        counted: False gives all passes one number, so that they are alike.
    """

    def __init__(self, *, counted: bool = True) -> None:
        self._counted = counted
        self._next = 0
        self._lock = Lock()

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
        return partial(Passes, counted=self._counted), ()  # elsewhere, passes are counted anew


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
