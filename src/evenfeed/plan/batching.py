"""Batches of unlike elements, and batches cut anew."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import INFINITE, UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, is_branch, map_structure, pack, paths
from evenfeed.plan.grouping import Batches
from evenfeed.plan.node import Node
from evenfeed.plan.sources import parts_up_to
from evenfeed.plan.windows import DatasetSpec


@final
@dataclass(frozen=True, eq=False)
class PaddedBatch(Batches):
    """Stacks consecutive elements, each padded to the shape of the largest or to a given one."""

    shapes: tuple[TensorShape, ...]
    values: tuple[Array, ...]

    @property
    def element_spec(self) -> Any:
        """The padded shapes behind a leading axis; its length is known if a short batch is dropped."""
        length = TensorShape([self.batch_size if self.drop_remainder else None])
        specs = flatten(self.child.element_spec, DATA)
        pairs = zip(self.shapes, specs, strict=True)
        padded = [TensorSpec(length.concatenate(shape), spec.dtype) for shape, spec in pairs]
        return pack(self.child.element_spec, padded, DATA)


def padded_batch(
    child: Node, batch_size: int, padded_shapes: Any, padding_values: Any, *, drop_remainder: bool
) -> PaddedBatch:
    """Return the node for the arguments of `Dataset.padded_batch`, checked."""
    specs = [padable(spec) for spec in flatten(child.element_spec, DATA)]
    where = paths(child.element_spec, DATA)
    if padded_shapes is None:
        shapes = [_own_shape(spec, path) for spec, path in zip(specs, where, strict=True)]
    else:
        given = parts_up_to(child.element_spec, padded_shapes)
        shapes = [_padded(value, spec) for value, spec in zip(given, specs, strict=True)]
    fills = [None if value is None else to_array(value) for value in _spread(child, padding_values)]
    values = [_fill(value, spec) for value, spec in zip(fills, specs, strict=True)]
    return PaddedBatch(
        child, batch_size, tuple(shapes), tuple(values), drop_remainder=drop_remainder
    )


def padable(spec: TypeSpec) -> TensorSpec:
    """Return the spec of a tensor, which can be padded; an error for anything else."""
    if not isinstance(spec, TensorSpec):
        raise TypeError(described(f"padded_batch takes tensors, but the elements hold {spec}."))
    return spec


def _own_shape(spec: TensorSpec, path: str) -> TensorShape:
    if spec.shape.rank is None:
        raise ValueError(
            described(
                f"The rank of the part {path or 'of the elements'} is not known.",
                fix="pass padded_shapes, for example [None].",
            )
        )
    return spec.shape


def _padded(value: Any, spec: TensorSpec) -> TensorShape:
    """Return a shape that the user gave for a part: None and -1 stand for the largest in a batch."""
    dims: Any = np.asarray(value).tolist() if is_tensor(value) else value
    if isinstance(dims, (list, tuple)):
        lengths = list(cast("list[Any]", dims))
        if any(isinstance(length, (list, tuple)) for length in lengths):
            raise ValueError(
                described(
                    f"A padded shape is a list of lengths, but got {shortened(lengths)}.",
                    fix="pass [None, 28], or a tuple of such lists for a tuple of parts.",
                )
            )
        dims = [None if length == -1 else length for length in lengths]
    shape = TensorShape(dims)
    if shape.rank is None:
        raise ValueError(described("A padded shape needs a known rank.", fix="pass [None]."))
    own = spec.shape if spec.shape.rank is not None else shape
    short = any(to is not None and (has or 0) > to for to, has in zip(shape, own, strict=False))
    if short or spec.shape.rank not in (None, shape.rank):
        raise ValueError(
            described(
                f"The padded shape {shape} does not fit parts of shape {spec.shape}.",
                fix="pass a shape of the same rank that is at least as large; None where it may vary.",
            )
        )
    return shape


def _spread(child: Node, values: Any) -> list[Any]:
    """Return a padding value for each part; a lone one serves all, and None all parts below it."""
    if is_branch(values, DATA):
        return parts_up_to(child.element_spec, values, absent=(None,))
    return [values] * len(flatten(child.element_spec, DATA))


def _fill(value: Array | None, spec: TensorSpec) -> Array:
    if value is None:
        return to_array(b"" if spec.dtype == dtypes.string else np.zeros((), spec.dtype))
    if value.ndim:
        raise ValueError(described(f"A padding value is a scalar, but has shape {value.shape}."))
    if value.dtype != spec.dtype:
        found, needed = dtypes.name_of(value.dtype), dtypes.name_of(spec.dtype)
        raise TypeError(
            described(
                f"The padding value {shortened(value.item())} is {found}, but the part is {needed}.",
                fix=f"pass numpy.{needed}({value.item()!r}).",
            )
        )
    return value


@final
@dataclass(frozen=True)
class Unbatch(Node):
    """Cuts each element along its first axis."""

    child: Node

    def __post_init__(self) -> None:
        _leading(self.child, "unbatch")

    @property
    def element_spec(self) -> Any:
        """The child's without the leading axis."""
        return map_structure(_row, self.child.element_spec, rules=DATA)

    @property
    def size(self) -> int:
        """The child's size times the length of a batch, where all parts have a known one."""
        length = _leading(self.child, "unbatch")
        if self.child.size == INFINITE:
            return INFINITE
        return UNKNOWN if length is None or self.child.size < 0 else self.child.size * length


@final
@dataclass(frozen=True)
class Rebatch(Node):
    """Cuts the rows of all batches into batches of other sizes, which come in turn."""

    child: Node
    batch_sizes: tuple[int, ...]
    _: KW_ONLY
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        map_structure(_row, self.child.element_spec, rules=DATA)
        _leading(self.child, "rebatch")
        if not any(self.batch_sizes) or min(self.batch_sizes) < 0:
            raise InvalidArgumentError(
                "Batch sizes must be at least 0, and one of them more, but got "
                f"{list(self.batch_sizes)}.",
                fix="pass the number of rows of a batch, or a list of such numbers.",
                origin=self.origin,
            )

    @property
    def element_spec(self) -> Any:
        """The child's; the length of a batch is known where all have one."""
        known = self._length()

        def rebatched(spec: TypeSpec) -> TypeSpec:
            if isinstance(spec, DatasetSpec):
                return spec.of_shape(TensorShape([known]).concatenate(spec.shape[1:]))
            if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
                return spec
            return TensorSpec(TensorShape([known]).concatenate(spec.shape[1:]), spec.dtype)

        return map_structure(rebatched, self.child.element_spec, rules=DATA)

    def _length(self) -> int | None:
        if len(set(self.batch_sizes)) > 1:
            return None
        size, whole = self.batch_sizes[0], _leading(self.child, "rebatch")
        even = whole is not None and whole % size == 0
        return size if self.drop_remainder or even else None

    @property
    def size(self) -> int:
        """Not known, as in TensorFlow."""
        return UNKNOWN


_NEEDS_ROWS: Final = "call batch() first: only elements with a first axis can be cut along it."


def _leading(child: Node, name: str) -> int | None:
    """Return the length of a batch, which all parts must share; None where one is not known."""
    specs = flatten(child.element_spec, DATA)
    shapes = [spec.shape for spec in specs if isinstance(spec, TensorSpec | DatasetSpec)]
    if any(shape.rank == 0 for shape in shapes):
        raise ValueError(described(f"{name}() cannot cut scalars.", fix=_NEEDS_ROWS))
    lengths = [None if shape.rank is None else shape[0] for shape in shapes]
    known = {length for length in lengths if length is not None}
    if len(known) > 1:
        raise ValueError(
            described(
                f"{name}() needs parts with one first dimension, but they have {sorted(known)}.",
                fix="cut the parts to one length first.",
            )
        )
    return known.pop() if known and None not in lengths else None


def _row(spec: TypeSpec) -> TypeSpec:
    match spec:
        case TensorSpec():
            return TensorSpec(None if spec.shape.rank is None else spec.shape[1:], spec.dtype)
        case DatasetSpec():
            return spec.of_shape(spec.shape[1:])
        case NoneTensorSpec():
            return spec
        case _:
            raise TypeError(described(f"{spec} cannot be cut into rows."))
