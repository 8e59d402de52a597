"""Elements that are kept in files, beyond the program."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

from evenfeed.formats.reader import DataFile
from evenfeed.plan.function import UserFunction
from evenfeed.plan.node import Node, SameElements
from evenfeed.plan.opening import Opens


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
