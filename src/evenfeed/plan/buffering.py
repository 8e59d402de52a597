"""Plan nodes that keep elements: prefetch, cache and snapshot."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Final, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.reader import DataFile
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.flattening import Opens
from evenfeed.plan.node import Node, SameElements, UserFunction, once

AUTOTUNE: Final = -1
_IN_ORDER: Final = "elements are held in the order in which they arrive"


@final
@dataclass(frozen=True)
class Prefetch(SameElements):
    """Reads the child ahead in a separate thread."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        elementwise=True,
        same_elements=True,
        sequential=_IN_ORDER,
        keeps_batch_size=True,
        passes_files=True,
        saves_at_delivery=True,
    )

    buffer_size: int = AUTOTUNE

    def __post_init__(self) -> None:
        if self.buffer_size < AUTOTUNE:
            raise InvalidArgumentError(
                f"buffer_size must be at least 0, or AUTOTUNE, but got {self.buffer_size}.",
                fix="pass the number of elements to read ahead, or evenfeed.data.AUTOTUNE.",
                origin=self.origin,
            )

    def why_sequential(self, *, selected: bool) -> str | None:
        return super().why_sequential(selected=selected) if self.buffer_size else None

    @property
    def arguments_shown(self) -> list[str] | None:
        return ["AUTOTUNE"] if self.buffer_size == AUTOTUNE else None


@final
@dataclass(frozen=True)
class Cache(SameElements):
    """Keeps the elements of the first complete pass: in files if a name is given, otherwise in memory."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        elementwise=True,
        same_elements=True,
        sequential=_IN_ORDER,
        keeps_batch_size=True,
        passes_files=True,
        replays=True,
        keeps_passes=True,
    )

    filename: str = ""

    @property
    @once
    def facts(self) -> NodeFacts:
        return replace(self.FACTS, writes_files=self.filename != "")


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

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential=_IN_ORDER, random=True, keeps_passes=True, writes_files=True
    )

    folder: str
    _: KW_ONLY
    compression: str = ""
    shard: UserFunction | None = None
    in_order: bool = True
    reading: Callable[[tuple[DataFile, ...], Any], Node] = field(compare=False, repr=False)
