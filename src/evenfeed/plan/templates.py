"""Plans with holes: what a function that makes datasets returns for a placeholder of an element.

A `Held` node whose columns are holes stands for the elements that the parts of an element give it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.handles import Handle
from evenfeed.core.side_effects import ProbeAbandoned
from evenfeed.core.specs import UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, pack
from evenfeed.formats.bytes.filesystems import paths_in
from evenfeed.formats.reader import DataFile
from evenfeed.plan.combining import Zip
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.windows import DatasetSpec, Held


@final
class PartHandle(Handle):
    """A placeholder for a part of the element from which a function makes a dataset.

    A function that looks at it needs each element. It cannot catch the exception, and go on without the value.
    """

    __slots__ = ()

    def _want_array(self) -> None:
        raise ProbeAbandoned("it uses the value of a part")


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


Hole: TypeAlias = RowsOf | Whole | Counting | RowsOfFile


def placeholder(index: int, spec: TypeSpec) -> Any:
    """Return the placeholder for a part with this spec: a Dataset for a dataset, and None for None.

    Raises:
        TypeError: The part is of another kind, which a function could tell from its placeholder.
    """
    match spec:
        case TensorSpec():
            return PartHandle(index, None, spec)
        case NoneTensorSpec():
            return None
        case DatasetSpec(element_spec=TensorSpec() as rows) if spec.shape.rank == 0:
            return spec.made_of(Held(rows, (_hole(RowsOf(index)),), UNKNOWN))
        case _:
            raise TypeError(f"There is no placeholder for {spec}.")


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
    return Held(pack(structure, specs, DATA), holes, UNKNOWN if length is None else length)


def whole_parts(structure: Any, values: list[Any]) -> Node | None:
    """Return `values`, of which some are placeholders, as one element; None if none is a placeholder."""
    if not any(map(_is_part, values)):
        return None
    specs = [TensorSpec(_shape(value), value.dtype) for value in values]
    holes = tuple(_hole(Whole(_source(value))) for value in values)
    return Held(pack(structure, specs, DATA), holes, 1)


def counted_parts(numbers: list[Any], dtype: DType) -> Node | None:
    """Return the range of one to three `numbers`; None if none is a placeholder."""
    if not any(map(_is_part, numbers)):
        return None
    bounds = [_bound(number) for number in numbers]
    start, stop = bounds[:2] if len(bounds) > 1 else (0, bounds[0])
    counting = Counting(start, stop, bounds[2] if len(bounds) > 2 else 1, dtype)
    return Held(TensorSpec([], dtype), (_hole(counting),), UNKNOWN)


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
    return Held(spec, (_hole(RowsOfFile(path.index, like)),), UNKNOWN)


def file_hole(template: Node) -> RowsOfFile | None:
    """Return the file that each dataset reads; None if there is none."""
    holes = [hole for node in template.walk() for hole in holes_of(node)]
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
    if plan.size < 0 and any(map(holes_of, plan.walk())):
        raise ProbeAbandoned("it uses the number of elements of a dataset")
    return plan.size


def _hole(hole: Hole) -> Any:
    return hole  # a column of Held, whose type names only real columns


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
