"""The plan node that reads the rows of files."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Final, final

from evenfeed.core.concurrency.progress import LongWork
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import UNKNOWN
from evenfeed.core.structure import DATA, assert_same, flatten
from evenfeed.formats.reader import DataFile
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node, once

# The most files whose rows are counted in advance. Opening one takes as long as reading some hundred rows.
_MOST_COUNTED: Final = 64


@final
@dataclass(frozen=True)
class Files(Node):
    """Reads the rows of files, one file after the other, or interleaved row by row.

    The node lists all files with their byte ranges, so sharding by file yields a node with fewer files.

    `as_reader` is true for TensorFlow's readers. Their size is unknown until they are read, even if rows have
    positions, and AutoShardPolicy.AUTO shards them by file.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=None, method="load")

    files: tuple[DataFile, ...]
    spec: Any
    _: KW_ONLY
    in_turn: bool = False
    as_reader: bool = False

    def __post_init__(self) -> None:
        if self.in_turn and self.size == UNKNOWN:
            raise ValueError("files can be interleaved only if their numbers of rows are known")

    @property
    def element_spec(self) -> Any:
        return self.spec

    @property
    def size(self) -> int:
        counts = None if self.as_reader else self.counts
        return UNKNOWN if counts is None else sum(counts)

    @property
    def counts(self) -> list[int] | None:
        """The number of rows of each file; None if it is not yet known for one of them."""
        return _all([file.rows for file in self.files])

    @property
    @once
    def facts(self) -> NodeFacts:
        again = any(file.is_read_again for file in self.files)
        method = self.files[0].read_by if self.files else self.FACTS.method
        return replace(self.FACTS, rewinds=not again, replays=again, method=method)

    def why_sequential(self, *, selected: bool) -> str | None:
        if self.counts is not None:
            return None
        if selected and len(self.files) > _MOST_COUNTED:
            return f"counting the rows of {len(self.files):,} files would delay the first element"
        # Counting rows may take a scan of all files.
        if selected and all(file.is_countable for file in self.files):
            return None
        return "the number of rows is known only after the files are read"

    @property
    def may_be_damaged(self) -> bool:
        return True

    @property
    def reads_files(self) -> bool:
        return self.as_reader

    @property
    def arguments_shown(self) -> list[str] | None:
        count = len(self.files)
        return [f"{count:,} file{'' if count == 1 else 's'}"] if self.as_reader else None

    def in_range(self, index: int, count: int) -> "Files | None":
        """Return the rows that begin in one of `count` ranges of the bytes of all files; None if these cannot be split."""
        extents = [file.extent for file in self.files]
        total = sum(stop - start for start, stop in extents)
        first, last = (total * (index + i) // count for i in (0, 1))
        parts: list[DataFile] = []
        for file, (start, stop) in zip(self.files, extents, strict=True):
            begin, end = max(start, start + first), min(stop, start + last)
            part = file.part(begin, end)
            if part is None:
                return None
            parts += [part] if begin < end else []
            first, last = first - (stop - start), last - (stop - start)
        return replace(self, files=tuple(parts))

    def counted(self) -> list[int] | None:
        """Return the number of rows of each file, reading files if necessary; None if rows have no positions."""
        scanned = [file for file in self.files if file.rows is None and file.is_countable]
        sizes, noun = [file.extent[1] for file in scanned], "file" if len(scanned) == 1 else "files"
        with LongWork(f"Indexing {len(sizes):,} {noun}", sum(sizes)):
            return _all([file.counted() for file in self.files])


def _all(counts: list[int | None]) -> list[int] | None:
    known = [count for count in counts if count is not None]
    return known if len(known) == len(counts) else None


def reads_files(plan: Node) -> bool:
    """Return True if a plan contains one of TensorFlow's readers, also inside flat_map or interleave."""
    return any(node.reads_files for node in plan.walk())


def check_read(plan: Node, spec: Any) -> None:
    """Raise unless the plan that reader_func returned yields elements like the saved ones."""
    assert_same(spec, plan.element_spec, DATA, names=("saved elements", "elements of reader_func"))
    for saved, read in zip(flatten(spec, DATA), flatten(plan.element_spec, DATA), strict=True):
        if not saved.is_compatible_with(read):
            raise InvalidArgumentError(
                f"reader_func must return elements with the saved spec {saved}, but returns {read}.",
                fix="only reorder elements in reader_func, and map the dataset that load returns.",
                origin=plan.origin,
            )
