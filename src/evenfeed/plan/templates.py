"""Plans with holes: what a function that makes datasets returns for a placeholder of an element.

A `Held` node whose columns are holes stands for the elements that the parts of an element give it. Functions may be nested:
the `maker` of placeholders and holes says to which of them the element belongs.

A function that computes with the parts is traced. What it computes, and passes to a method of a dataset, counts as a part.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast, final

from evenfeed.core import dtypes
from evenfeed.core.block import Block
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.handles import Handle
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.side_effects import ProbeAbandoned
from evenfeed.core.specs import UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.formats.bytes.filesystems import paths_in
from evenfeed.formats.reader import DataFile
from evenfeed.plan.combining import Zip
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import OpenCount, Repeat, Skip, Take
from evenfeed.plan.windows import DatasetSpec, Held


@final
class PartHandle(Handle):
    """A placeholder for a part of the element from which a function makes a dataset.

    A function that looks at it needs each element. It cannot catch the exception, and go on without the value.
    """

    __slots__ = ("maker",)

    def __init__(self, index: int, spec: TypeSpec, maker: object) -> None:
        super().__init__(index, None, spec)
        self.maker = maker

    def want_array(self) -> None:
        raise ProbeAbandoned("it uses the value of a part")


class TakesParts(ABC):
    """Gives placeholders for what a traced function computes, and passes to the methods of datasets."""

    @abstractmethod
    def part_for(self, value: object) -> PartHandle | None:
        """Return the placeholder for a value; None if the function does not compute it from its element."""


_TAKING: Final[ContextVar[TakesParts | None]] = ContextVar("_TAKING", default=None)


@contextmanager
def taking_parts(taker: TakesParts | None) -> Generator[None]:
    """Let `as_part` ask `taker` in this context, or nobody."""
    token = _TAKING.set(taker)
    try:
        yield
    finally:
        _TAKING.reset(token)


def as_part(value: Any) -> Any:
    """Return the placeholder for a value that a traced function computes from its element; any other value unchanged."""
    taker = _TAKING.get()
    found = None if taker is None else taker.part_for(value)
    return value if found is None else found


@final
@dataclass(frozen=True)
class RowsOf:
    """A column: the rows of a part of the element, or of the same array for every element."""

    source: int | Array


@final
@dataclass(frozen=True)
class Whole:
    """A column of one row: a part of the element, or the same value for every element."""

    source: int | Array


@final
@dataclass(frozen=True)
class Counting:
    """A column of numbers from `start` up to `stop`. Each bound is a number, or the part that has it."""

    start: "int | Whole"
    stop: "int | Whole"
    step: "int | Whole"
    dtype: DType


@final
@dataclass(frozen=True)
class RowsOfFile:
    """A column: the rows of a small file whose path is a part of the element.

    Attributes:
        source: The part.
        like: A file of the same kind, at any path.
    """

    source: int
    like: DataFile

    def files(self, paths: Any) -> list[DataFile]:
        """Return the files at the paths that elements have."""
        return [replace(self.like, path=path) for path in paths_in(paths, "filenames")]


@final
@dataclass(frozen=True)
class GroupRows:
    """Stands for every column of the elements of a group, which are a Block."""


Hole: TypeAlias = RowsOf | Whole | Counting | RowsOfFile | GroupRows


@final
@dataclass(frozen=True)
class Template:
    """All datasets that a function makes.

    Attributes:
        plan: The plan with holes.
        compute: Computes the parts that the holes name from the elements; None if they are the parts of an element.
    """

    plan: Node
    compute: Callable[[Block], Block] | None = None


def placeholder(index: int, spec: TypeSpec, maker: object) -> Any:
    """Return the placeholder for a part with this spec: a Dataset for a dataset, and None for None.

    Args:
        index: The number of the part.
        spec: Its spec.
        maker: Identifies the function that gets it.

    Raises:
        TypeError: The part is of another kind, which a function could tell from its placeholder.
    """
    match spec:
        case TensorSpec():
            return PartHandle(index, spec, maker)
        case RaggedTensorSpec(ragged_rank=0):  # its values are plain arrays
            return PartHandle(index, TensorSpec(spec.shape, spec.dtype), maker)
        case NoneTensorSpec():
            return None
        case DatasetSpec(element_spec=TensorSpec() as rows) if spec.shape.rank == 0:
            return spec.made_of(Held(rows, (_hole(RowsOf(index)),), UNKNOWN, maker=maker))
        case _:
            raise TypeError(f"There is no placeholder for {spec}.")


def group_placeholder(spec: Any, maker: object) -> Node:
    """Return the placeholder for the dataset of a group whose elements have this spec."""
    holes = tuple(_hole(GroupRows()) for _ in flatten(spec, DATA))
    return Held(spec, holes, UNKNOWN, maker=maker)


def sliced_parts(structure: Any, values: list[Any]) -> Node | None:
    """Return the rows of `values`, of which some are placeholders; None if none is.

    Raises:
        TypeError: The rows cannot be known without the element.
    """
    if not any(map(_is_part, values)):
        return None
    lengths = {_shape(value)[0] for value in values}
    if len(lengths) > 1:
        raise TypeError("The rows of a dataset must all have a known number, or none.")
    specs = [TensorSpec(_shape(value)[1:], value.dtype) for value in values]
    holes = tuple(_hole(RowsOf(_source(value))) for value in values)
    length = lengths.pop()
    count = UNKNOWN if length is None else length
    return Held(pack(structure, specs, DATA), holes, count, maker=_maker(values))


def whole_parts(structure: Any, values: list[Any]) -> Node | None:
    """Return `values`, of which some are placeholders, as one element; None if none is a placeholder."""
    if not any(map(_is_part, values)):
        return None
    specs = [TensorSpec(_shape(value), value.dtype) for value in values]
    holes = tuple(_hole(Whole(_source(value))) for value in values)
    return Held(pack(structure, specs, DATA), holes, 1, maker=_maker(values))


def counted_parts(numbers: list[Any], dtype: DType) -> Node | None:
    """Return the range of one to three `numbers`; None if none is a placeholder."""
    if not any(map(_is_part, numbers)):
        return None
    bounds = [_bound(number) for number in numbers]
    start, stop = bounds[:2] if len(bounds) > 1 else (0, bounds[0])
    counting = Counting(start, stop, bounds[2] if len(bounds) > 2 else 1, dtype)
    return Held(TensorSpec([], dtype), (_hole(counting),), UNKNOWN, maker=_maker(numbers))


def counted_by_part(count: Any) -> OpenCount | None:
    """Return a count of elements that is a placeholder; None if it is none."""
    if not isinstance(count, PartHandle):
        return None
    _bound(count)
    return OpenCount.of(count.index, count.maker)


def open_count(node: Node) -> OpenCount | None:
    """Return the count of a node, if it depends on the element."""
    count = node.count if isinstance(node, Repeat | Take | Skip) else None
    return count if isinstance(count, OpenCount) else None


def part_of_file(filenames: Any, kind: Callable[[str], DataFile], spec: Any) -> Node | None:
    """Return the rows of a file whose path is a placeholder; None if the path is none, or files are read one by one.

    Args:
        filenames: A path, or a list of paths.
        kind: Makes a file of a path.
        spec: The spec of a row.
    """
    paths = cast("list[Any]", filenames if type(filenames) is list else [filenames])
    path = paths[0] if len(paths) == 1 else None
    if not isinstance(path, PartHandle) or not (like := kind("")).reads_together:
        return None
    if path.tensor_spec != TensorSpec([], dtypes.string):
        raise TypeError("The path of a file must be a single text.")
    return Held(spec, (_hole(RowsOfFile(path.index, like)),), UNKNOWN, maker=path.maker)


def file_hole(template: Template) -> RowsOfFile | None:
    """Return the file that each dataset reads; None if there is none."""
    holes = [hole for node in template.plan.walk() for hole in holes_of(node)]
    return next((hole for hole in holes if isinstance(hole, RowsOfFile)), None)


def beside_parts(child: Node, parts: list[PartHandle]) -> Node:
    """Return the elements of `child`, each in a pair with the same values of parts."""
    values = whole_parts(tuple(range(len(parts))), list[Any](parts))
    assert values is not None
    return Zip((0, 1), (child, Repeat(values, -1)))


def is_endless(node: Node) -> bool:
    """Return True for values that `beside_parts` repeats."""
    return (
        isinstance(node, Repeat)
        and node.count < 0
        and bool(holes_of(node.child))
        and node.child.size == 1
    )


def holes_of(node: Node) -> tuple[Hole, ...]:
    """Return the holes of a node; none if it has elements of its own."""
    columns: tuple[Any, ...] = node.columns if isinstance(node, Held) else ()
    return tuple(column for column in columns if isinstance(column, Hole))


def size_seen(plan: Node) -> int:
    """Return the size of a plan for a user function.

    Raises:
        ProbeAbandoned: It depends on the element.
    """
    if plan.size < 0 and any(map(depends_on_element, plan.walk())):
        raise ProbeAbandoned("it uses the number of elements of a dataset")
    return plan.size


def _hole(hole: Hole) -> Any:
    return hole  # a column of Held, whose type names only real columns


def depends_on_element(node: Node) -> bool:
    """Return True if a node has holes, or a count that is a part of the element."""
    return bool(holes_of(node)) or open_count(node) is not None


def is_made_by(node: Node, maker: object) -> bool:
    """Return True unless a node depends on the parts of another function's element."""
    if (count := open_count(node)) is not None:
        return count.maker is maker
    return not holes_of(node) or (isinstance(node, Held) and node.maker is maker)


def _maker(values: list[Any]) -> object:
    makers = {id(value.maker): value.maker for value in values if isinstance(value, PartHandle)}
    if len(makers) > 1:
        raise TypeError("The parts belong to the elements of several functions.")
    return next(iter(makers.values()))


def _is_part(value: object) -> bool:
    return isinstance(value, PartHandle)


def _shape(value: Any) -> tuple[int | None, ...]:
    shape = value.tensor_spec.shape if isinstance(value, PartHandle) else value.shape
    return tuple(shape)


def _source(value: Any) -> int | Array:
    return value.index if isinstance(value, PartHandle) else value


def _bound(number: Any) -> "int | Whole":
    if not isinstance(number, PartHandle):
        return number
    spec = number.tensor_spec
    if spec.dtype.kind != "i" or spec.shape.rank != 0 or spec.dtype == dtypes.bool:
        raise TypeError("The bounds of a range must be integers.")
    return Whole(number.index)
