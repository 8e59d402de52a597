"""Elements that are held: read ahead, or kept for the next pass."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from itertools import count
from threading import Lock
from typing import Any, Final, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.reader import DataFile
from evenfeed.plan.flattening import Opens
from evenfeed.plan.node import Node, SameElements, UserFunction

AUTOTUNE: Final = -1


@final
@dataclass(frozen=True)
class Prefetch(SameElements):
    """Reads the child ahead, in a thread of its own."""

    buffer_size: int = AUTOTUNE

    def __post_init__(self) -> None:
        if self.buffer_size < AUTOTUNE:
            raise InvalidArgumentError(
                f"buffer_size must be at least 0, or AUTOTUNE, but got {self.buffer_size}.",
                fix="pass how many elements to read ahead, or evenfeed.data.AUTOTUNE.",
                origin=self.origin,
            )


_numbers = count()


@final
class Memory:
    """Holds what a dataset keeps between its passes. A copy in another process starts empty.

    Attributes:
        number: Which one it is, of all in this process.
        content: The elements of a pass; None while none was completed.
        promised: The pass that a restored iterator knows to be kept, while it is read again.
        lock: For who completes a pass.
    """

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.content: Any = None
        self.promised: Any = None
        self.lock = Lock()

    @property
    def origin(self) -> Any:
        """Which pass is kept; None where none is."""
        return self.promised if self.content is None else self.content.origin

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Memory, ()


@final
@dataclass(frozen=True)
class Cache(SameElements):
    """Keeps the elements of the first whole pass: in memory, or in files where a name is given."""

    filename: str = ""
    _: KW_ONLY
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)


@final
@dataclass(frozen=True)
class Snapshot(SameElements, Opens):
    """Writes the first whole pass into a folder, from which later ones read, in other programs too.

    Attributes:
        folder: Where; it is named after what the child does, so that a changed one writes anew.
        compression: "" or "GZIP".
        shard: Returns the number of the shard that an element goes to; None for one shard.
        in_order: Whether elements are read in the order in which they were written.
        reading: Returns the plan that reads files of elements with these specs.
    """

    folder: str
    _: KW_ONLY
    compression: str = ""
    shard: UserFunction | None = None
    in_order: bool = True
    reading: Callable[[tuple[DataFile, ...], Any], Node] = field(compare=False, repr=False)
