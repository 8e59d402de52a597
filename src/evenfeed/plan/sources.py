"""Plan nodes that create elements in memory: range, from_tensors, from_tensor_slices, from_generator."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, TypeAlias, final

from evenfeed.core import dtypes
from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.optional import OptionalSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import TensorShape
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec, type_spec_from_value
from evenfeed.core.structure import DATA, flatten, map_structure, opened, outline, pack
from evenfeed.plan.facts import NodeFacts
from evenfeed.plan.node import Node
from evenfeed.plan.windows import ElementValue, common_spec


@final
@dataclass(frozen=True)
class Range(Node):
    """Counts from `start` up or down to `stop` (exclusive)."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=None, rewinds=True)

    start: int
    stop: int
    step: int = 1
    _: KW_ONLY
    dtype: DType = dtypes.int64

    def __post_init__(self) -> None:
        if self.step == 0:
            raise InvalidArgumentError(
                "The step of a range must not be 0.",
                fix="pass a positive step to count up, or a negative step to count down.",
                origin=self.origin,
            )
        if self.dtype.kind not in "iufcV":
            raise InvalidArgumentError(
                f"output_type of a range must be numeric, but got {dtypes.name_of(self.dtype)}.",
                fix="pass an integer, float or complex dtype.",
                origin=self.origin,
            )

    @property
    def element_spec(self) -> TensorSpec:
        return TensorSpec([], self.dtype)

    @property
    def size(self) -> int:
        return max(0, -(-(self.stop - self.start) // self.step))


@final
@dataclass(frozen=True, eq=False)
class Tensor(Node):
    """Yields a single element: a structure of arrays, ragged and sparse tensors, datasets and Optionals."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(sequential=None, rewinds=True, method="from_tensors")

    structure: Any
    arrays: Sequence[Array | ElementValue | None]

    def __post_init__(self) -> None:
        if _is_empty(self.arrays):
            raise InvalidArgumentError(_NO_TENSOR, fix=_PASS_ONE, origin=self.origin)

    @property
    def element_spec(self) -> Any:
        return pack(self.structure, list(map(type_spec_from_value, self.arrays)), DATA)

    @property
    def size(self) -> int:
        return 1


# What has rows: an array, a ragged or sparse tensor, or a list of datasets.
Sliced: TypeAlias = Array | RaggedTensor | SparseTensor | list[Any]


@final
@dataclass(frozen=True, eq=False)
class TensorSlice(Node):
    """Yields the rows of arrays and of ragged and sparse tensors, and the datasets of lists of datasets."""

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential=None, rewinds=True, method="from_tensor_slices"
    )

    structure: Any
    arrays: Sequence[Sliced | None]

    def __post_init__(self) -> None:
        if _is_empty(self.arrays):
            raise ValueError(described(_NO_TENSOR, fix=_PASS_ONE, origin=self.origin))
        lengths = {_rows_of(array) for array in self.arrays if array is not None}
        if () in lengths:
            raise ValueError(
                described(
                    "from_tensor_slices cannot slice a scalar.",
                    fix="pass arrays with a first dimension, or call Dataset.from_tensors.",
                    origin=self.origin,
                )
            )
        _ = self.element_spec  # Raises now if a list contains datasets with incompatible elements.
        if len(lengths) > 1:
            counts = [None if array is None else _rows_of(array)[0] for array in self.arrays]
            shown = pack(self.structure, counts, DATA)
            raise ValueError(
                described(
                    f"All components must have the same first dimension, but they have {shown}.",
                    fix="cut the components to the same length first.",
                    origin=self.origin,
                )
            )

    @property
    def element_spec(self) -> Any:
        return pack(self.structure, list(map(_row_spec, self.arrays)), DATA)

    @property
    def size(self) -> int:
        return next(_rows_of(array)[0] for array in self.arrays if array is not None)


_NO_TENSOR: Final = "The elements of a dataset must contain at least one tensor."
_PASS_ONE: Final = "pass an array, or a structure that contains one."


def _is_empty(arrays: Sequence[Any]) -> bool:
    return all(array is None for array in arrays)


def _rows_of(values: Sliced) -> tuple[int, ...]:
    if isinstance(values, list):
        return (len(values),)
    return tuple(values.shape[:1])  # pyright: ignore[reportReturnType] - lengths of values are known


def _row_spec(values: Sliced | None) -> TypeSpec:
    if isinstance(values, list):
        return common_spec(values)
    spec = type_spec_from_value(values)
    if isinstance(spec, BatchableSpec):
        return spec.unbatched()
    return TensorSpec(spec.shape[1:], spec.dtype) if isinstance(spec, TensorSpec) else spec


@final
@dataclass(frozen=True)
class FromGenerator(Node):
    """Yields the elements of a generator, converted to a given signature.

    Each pass calls `generator` again.
    """

    FACTS: ClassVar[NodeFacts] = NodeFacts(
        sequential="a generator can only move forward", replays=True
    )

    generator: Callable[..., Iterable[Any]]
    signature: Any
    args: Sequence[Array] = ()

    def __post_init__(self) -> None:
        if not callable(self.generator):  # pyright: ignore[reportUnnecessaryComparison]
            raise TypeError(
                described(
                    f"generator must be a function, but got {shortened(self.generator)}.",
                    fix="pass a function that returns the iterable: lambda: values.",
                    origin=self.origin,
                )
            )
        for spec in flatten(self.signature, DATA):
            if not isinstance(spec, TensorSpec | NoneTensorSpec | BatchableSpec | OptionalSpec):
                raise TypeError(
                    described(
                        f"output_signature must contain TensorSpecs, but contains {shortened(spec)}.",
                        fix="pass evenfeed.TensorSpec(shape, dtype), or a tuple or dict of them.",
                        origin=self.origin,
                    )
                )

    @property
    def element_spec(self) -> Any:
        return self.signature

    @property
    def size(self) -> int:
        return UNKNOWN


def signature_of(output_types: Any, output_shapes: Any, output_signature: Any) -> Any:
    """Return the signature for from_generator: output_signature, or output_types with output_shapes."""
    if output_signature is not None:
        for name, value in (("output_types", output_types), ("output_shapes", output_shapes)):
            if value is not None:
                raise _unclear(f"{name} and output_signature cannot both be passed.")
        return output_signature
    if output_types is None:
        raise _unclear("from_generator needs the spec of the elements.")
    kinds = map_structure(dtypes.as_dtype, output_types, rules=DATA)
    if output_shapes is None:
        return map_structure(_of_any_shape, kinds, rules=DATA)
    shapes = map(TensorShape, parts_up_to(kinds, output_shapes))
    specs = [
        TensorSpec(shape, kind) for shape, kind in zip(shapes, flatten(kinds, DATA), strict=True)
    ]
    return pack(kinds, specs, DATA)


def _of_any_shape(dtype: DType) -> TensorSpec:
    return TensorSpec(None, dtype)


def parts_up_to(structure: object, value: object, absent: tuple[object, ...] = ()) -> list[Any]:
    """Flatten `value` up to the leaves of `structure`, without flattening deeper branches.

    A value in `absent` may replace a whole branch; it then applies to each leaf of the branch.
    """
    branch = opened(structure, DATA)
    if branch is None:
        return [value]
    if any(value is each for each in absent):
        return [value] * len(flatten(structure, DATA))
    inner = opened(value, DATA)
    if inner is None or not isinstance(value, _kind(structure)):
        raise TypeError(_unlike(structure, value))
    same_keys = inner.labels == branch.labels or not issubclass(_kind(structure), Mapping)
    if not same_keys or len(inner.parts) != len(branch.parts):
        raise ValueError(_unlike(structure, value))
    pairs = zip(branch.parts, inner.parts, strict=True)
    return [part for one, two in pairs for part in parts_up_to(one, two, absent)]


def _kind(structure: object) -> type:
    # Any mapping is accepted for a dict; other containers must have the same type.
    return Mapping if issubclass(type(structure), Mapping) else type(structure)


def _unlike(structure: object, value: object) -> str:
    got = shortened(value) if opened(value, DATA) is None else outline(value, DATA)
    return described(
        f"Expected the structure {outline(structure, DATA)}, but got {got}.",
        fix="use the same nesting, keys and container types.",
    )


def _unclear(what: str) -> TypeError:
    return TypeError(
        described(
            what,
            fix="pass only output_signature=evenfeed.TensorSpec(shape, dtype), or a tuple or dict of them like the elements.",
        )
    )
