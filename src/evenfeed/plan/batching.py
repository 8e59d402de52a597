"""Plan nodes for padded_batch, unbatch and rebatch."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.conversion import Array, is_tensor, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import INFINITE, UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, is_branch, map_structure, pack, paths
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.grouping import Batches, batched
from evenfeed.plan.node import Node
from evenfeed.plan.sources import parts_up_to

UNCOUNTED: Final = "the number of elements is known only after they are read"


@final
@dataclass(frozen=True, eq=False)
class PaddedBatch(Batches):
    """Stacks consecutive elements, padded to a given shape or to the largest element of the batch."""

    shapes: tuple[TensorShape, ...]
    values: tuple[Array, ...]

    @property
    def element_spec(self) -> Any:
        length = TensorShape([self.batch_size if self.drop_remainder else None])
        specs = flatten(self.child.element_spec, DATA)
        pairs = zip(self.shapes, specs, strict=True)
        padded = [TensorSpec(length.concatenate(shape), spec.dtype) for shape, spec in pairs]
        return pack(self.child.element_spec, padded, DATA)


def padded_batch(
    child: Node, batch_size: int, padded_shapes: Any, padding_values: Any, *, drop_remainder: bool
) -> PaddedBatch:
    """Check the arguments of `Dataset.padded_batch`, and return the node."""
    specs = [padable(spec) for spec in flatten(child.element_spec, DATA)]
    where = paths(child.element_spec, DATA)
    if padded_shapes is None:
        shapes = [_own_shape(spec, path) for spec, path in zip(specs, where, strict=True)]
    else:
        given = parts_up_to(child.element_spec, padded_shapes)
        shapes = [_padded(value, spec) for value, spec in zip(given, specs, strict=True)]
    values = padding_values_of(child, padding_values, specs)
    return PaddedBatch(child, batch_size, tuple(shapes), values, drop_remainder=drop_remainder)


def padding_values_of(child: Node, given: Any, specs: Sequence[TensorSpec]) -> tuple[Array, ...]:
    """Return what to pad each component with; `given` is one value, one for each component, or None."""
    fills = [None if value is None else to_array(value) for value in _spread(child, given)]
    return tuple(_fill(value, spec) for value, spec in zip(fills, specs, strict=True))


def padable(spec: TypeSpec) -> TensorSpec:
    """Raise unless a spec is a TensorSpec, since only tensors can be padded; return it."""
    if not isinstance(spec, TensorSpec):
        raise TypeError(
            described(f"padded_batch can only pad tensors, but the elements hold {spec}.")
        )
    return spec


def _own_shape(spec: TensorSpec, path: str) -> TensorShape:
    if spec.shape.rank is None:
        raise ValueError(
            described(
                f"padded_batch needs a known rank, but that of {path or 'the elements'} is unknown.",
                fix="pass padded_shapes, for example [None].",
            )
        )
    return spec.shape


def _padded(value: Any, spec: TensorSpec) -> TensorShape:
    """Check a padded shape for a component. None and -1 mean the largest length in the batch."""
    dims: Any = np.asarray(value).tolist() if is_tensor(value) else value
    if isinstance(dims, (list, tuple)):
        lengths = list(cast("list[Any]", dims))
        if any(isinstance(length, (list, tuple)) for length in lengths):
            raise ValueError(
                described(
                    f"A padded shape must be a list of lengths, but got {shortened(lengths)}.",
                    fix="pass [None, 28], or a tuple of such lists for a tuple of components.",
                )
            )
        dims = [None if length == -1 else length for length in lengths]
    shape = TensorShape(dims)
    if shape.rank is None:
        raise ValueError(described("A padded shape must have a known rank.", fix="pass [None]."))
    own = spec.shape if spec.shape.rank is not None else shape
    short = any(to is not None and (has or 0) > to for to, has in zip(shape, own, strict=False))
    if short or spec.shape.rank not in (None, shape.rank):
        raise ValueError(
            described(
                f"The padded shape {shape} does not fit components of shape {spec.shape}.",
                fix="pass a shape of the same rank that is at least as large; None for lengths that vary.",
            )
        )
    return shape


def _spread(child: Node, values: Any) -> list[Any]:
    """Return a padding value for each component. A single value applies to all, None to its whole branch."""
    if is_branch(values, DATA):
        return parts_up_to(child.element_spec, values, absent=(None,))
    return [values] * len(flatten(child.element_spec, DATA))


def _fill(value: Array | None, spec: TensorSpec) -> Array:
    if value is None:
        return to_array(b"" if spec.dtype == dtypes.string else np.zeros((), spec.dtype))
    if value.ndim:
        raise ValueError(
            described(f"A padding value must be a scalar, but has shape {value.shape}.")
        )
    if value.dtype != spec.dtype:
        found, needed = dtypes.name_of(value.dtype), dtypes.name_of(spec.dtype)
        raise TypeError(
            described(
                f"The padding value {shortened(value.item())} is {found}, but the component is {needed}.",
                fix=f"pass a value that is {needed}, such as numpy.{needed}(0).",
            )
        )
    return value


@final
@dataclass(frozen=True)
class Unbatch(Node):
    """Splits each element along its first axis."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential=UNCOUNTED, passes_files=True, rewinds=True, counts_by_value=True
    )

    child: Node

    def __post_init__(self) -> None:
        _leading(self.child, "unbatch")

    @property
    def element_spec(self) -> Any:
        return map_structure(_row, self.child.element_spec, rules=DATA)

    @property
    def size(self) -> int:
        length = _leading(self.child, "unbatch")
        if self.child.size == INFINITE:
            return INFINITE
        if length is None or self.child.size < 0 or not _are_rows_counted(self.child):
            return UNKNOWN
        return self.child.size * length


@final
@dataclass(frozen=True)
class Rebatch(Node):
    """Regroups the rows of all batches into batches of other sizes, cycling through them."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=UNCOUNTED, passes_files=True)

    child: Node
    batch_sizes: tuple[int, ...]
    _: KW_ONLY
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        _ = self.row_spec  # raises now if a part cannot be split
        _leading(self.child, "rebatch")
        if not any(self.batch_sizes) or min(self.batch_sizes) < 0:
            raise InvalidArgumentError(
                "Batch sizes must be at least 0, and at least one must be positive, but got "
                f"{list(self.batch_sizes)}.",
                fix="pass the number of rows in a batch, or a list of such numbers.",
                origin=self.origin,
            )

    @property
    def row_spec(self) -> Any:
        """The spec of the rows of a batch."""
        return map_structure(_row, self.child.element_spec, rules=DATA)

    @property
    def element_spec(self) -> Any:
        known = self._length()

        def rebatched(spec: TypeSpec) -> TypeSpec:
            has_rows = isinstance(spec, TensorSpec | BatchableSpec) and spec.shape.rank is not None
            return batched(_row(spec), known) if has_rows else spec

        return map_structure(rebatched, self.child.element_spec, rules=DATA)

    def _length(self) -> int | None:
        if len(set(self.batch_sizes)) > 1:
            return None
        size, whole = self.batch_sizes[0], _leading(self.child, "rebatch")
        even = whole is not None and whole % size == 0
        return size if self.drop_remainder or even else None

    @property
    def size(self) -> int:
        return UNKNOWN  # as in TensorFlow


_NEEDS_ROWS: Final = "call batch() first, so that elements have a first axis."


def _leading(child: Node, name: str) -> int | None:
    """Return the length of a batch, which all components must share; None if it is unknown for any."""
    specs = flatten(child.element_spec, DATA)
    shapes = [spec.shape for spec in specs if isinstance(spec, TensorSpec | BatchableSpec)]
    if any(shape.rank == 0 for shape in shapes):
        raise ValueError(described(f"{name}() cannot split scalars.", fix=_NEEDS_ROWS))
    lengths = [None if shape.rank is None else shape[0] for shape in shapes]
    known = {length for length in lengths if length is not None}
    if len(known) > 1:
        raise ValueError(
            described(
                f"{name}() needs components with the same first dimension, but they have {sorted(known)}.",
                fix="cut the components to the same length first.",
            )
        )
    return known.pop() if known and None not in lengths else None


def _are_rows_counted(child: Node) -> bool:
    specs = flatten(child.element_spec, DATA)
    return all(not isinstance(spec, BatchableSpec) or spec.rows_are_counted for spec in specs)


def _row(spec: TypeSpec) -> TypeSpec:
    match spec:
        case TensorSpec():
            return TensorSpec(None if spec.shape.rank is None else spec.shape[1:], spec.dtype)
        case BatchableSpec():
            return spec.unbatched()
        case NoneTensorSpec():
            return spec
        case _:
            raise TypeError(described(f"{spec} cannot be split into rows."))
