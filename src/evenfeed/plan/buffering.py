"""Plan nodes that keep elements: prefetch, cache and snapshot."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.reader import DataFile
from evenfeed.plan.flattening import Opens
from evenfeed.plan.node import Node, SameElements, UserFunction

AUTOTUNE: Final = -1


@final
@dataclass(frozen=True)
class Prefetch(SameElements):
    """Reads the child ahead in a separate thread."""

    buffer_size: int = AUTOTUNE

    def __post_init__(self) -> None:
        if self.buffer_size < AUTOTUNE:
            raise InvalidArgumentError(
                f"buffer_size must be at least 0, or AUTOTUNE, but got {self.buffer_size}.",
                fix="pass the number of elements to read ahead, or evenfeed.data.AUTOTUNE.",
                origin=self.origin,
            )


@final
@dataclass(frozen=True)
class Cache(SameElements):
    """Keeps the elements of the first complete pass: in files if a name is given, otherwise in memory."""

    filename: str = ""


@final
@dataclass(frozen=True)
class Snapshot(SameElements, Opens):
    """Writes the first complete pass to a directory, which later passes and other programs read.

    Attributes:
        folder: The directory. Its name contains the child's fingerprint, so that a changed plan writes again.
        compression: "" or "GZIP".
        shard: Returns the index of the shard that an element is written to; None for a single shard.
        in_order: True if elements are read in the order in which they were written.
        reading: Returns the plan that reads the given files with the given element spec.
    """

    folder: str
    _: KW_ONLY
    compression: str = ""
    shard: UserFunction | None = None
    in_order: bool = True
    reading: Callable[[tuple[DataFile, ...], Any], Node] = field(compare=False, repr=False)
