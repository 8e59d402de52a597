"""Where elements come from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.optional import OptionalSpec
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import Effects
from evenfeed.core.specs import UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec, type_spec_from_value
from evenfeed.core.structure import DATA, flatten, map_structure, opened, outline, pack
from evenfeed.plan.node import Node
from evenfeed.plan.windows import DatasetSpec, ElementValue, common_spec


@final
@dataclass(frozen=True)
class Range(Node):
    """Counts from `start` up or down to `stop`, which is not reached."""

    start: int
    stop: int
    step: int = 1
    _: KW_ONLY
    dtype: DType = dtypes.int64

    def __post_init__(self) -> None:
        if self.step == 0:
            raise InvalidArgumentError(
                "The step of a range must not be 0.",
                fix="pass a step above 0 to count up, below 0 to count down.",
                origin=self.origin,
            )
        if self.dtype.kind not in "iufcV":
            raise InvalidArgumentError(
                f"A range counts in numbers, but output_type is {dtypes.name_of(self.dtype)}.",
                fix="pass an integer, float or complex dtype.",
                origin=self.origin,
            )

    @property
    def element_spec(self) -> TensorSpec:
        """A scalar."""
        return TensorSpec([], self.dtype)

    @property
    def size(self) -> int:
        """How many numbers there are; none where the step leads away from `stop`."""
        return max(0, -(-(self.stop - self.start) // self.step))


@final
@dataclass(frozen=True, eq=False)
class Tensor(Node):
    """One element: arrays, datasets and Optionals as they are, in their structure."""

    structure: Any
    arrays: Sequence[Array | ElementValue | None]

    def __post_init__(self) -> None:
        if _is_empty(self.arrays):
            raise InvalidArgumentError(_NO_TENSOR, fix=_PASS_ONE, origin=self.origin)

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of the arrays."""
        return pack(self.structure, list(map(type_spec_from_value, self.arrays)), DATA)

    @property
    def size(self) -> int:
        """One."""
        return 1


@final
@dataclass(frozen=True, eq=False)
class TensorSlice(Node):
    """The rows of some arrays, which all have the same first dimension; of a list of datasets, each of them."""

    structure: Any
    arrays: Sequence[Array | list[Any] | None]

    def __post_init__(self) -> None:
        if _is_empty(self.arrays):
            raise ValueError(described(_NO_TENSOR, fix=_PASS_ONE, origin=self.origin))
        lengths = {_rows_of(array) for array in self.arrays if array is not None}
        if () in lengths:
            raise ValueError(
                described(
                    "A scalar has no slices, but from_tensor_slices was given one.",
                    fix="pass arrays with a first dimension, or call Dataset.from_tensors.",
                    origin=self.origin,
                )
            )
        _ = self.element_spec  # datasets of unlike elements are refused where they are given
        if len(lengths) > 1:
            shown = pack(self.structure, [None if a is None else len(a) for a in self.arrays], DATA)
            raise ValueError(
                described(
                    f"All parts must have one first dimension, but they have {shown}.",
                    fix="cut the parts to one length before you pass them.",
                    origin=self.origin,
                )
            )

    @property
    def element_spec(self) -> Any:
        """The shape of a row of each part."""
        return pack(self.structure, list(map(_row_spec, self.arrays)), DATA)

    @property
    def size(self) -> int:
        """The first dimension."""
        return next(len(array) for array in self.arrays if array is not None)


_NO_TENSOR: Final = "A dataset needs elements with at least one tensor."
_PASS_ONE: Final = "pass an array, or a structure that holds one."


def _is_empty(arrays: Sequence[Any]) -> bool:
    return all(array is None for array in arrays)


def _rows_of(array: Array | list[Any]) -> tuple[int, ...]:
    return (len(array),) if isinstance(array, list) else array.shape[:1]


def _row_spec(array: Array | list[Any] | None) -> TypeSpec:
    if isinstance(array, list):
        return common_spec(array)
    return NoneTensorSpec() if array is None else TensorSpec(array.shape[1:], array.dtype)


@final
@dataclass(frozen=True)
class FromGenerator(Node):
    """What an iterable yields, converted to specs that the user gave.

    Each pass calls `generator` anew. How many elements it will yield, nobody knows before. `effects` says
    what it was seen to read and change.
    """

    generator: Callable[..., Iterable[Any]]
    signature: Any
    args: Sequence[Array] = ()
    _: KW_ONLY
    effects: Effects = field(default_factory=Effects, compare=False, repr=False)

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
            if not isinstance(spec, TensorSpec | NoneTensorSpec | DatasetSpec | OptionalSpec):
                raise TypeError(
                    described(
                        f"output_signature holds {shortened(spec)}, which is no TensorSpec.",
                        fix="pass evenfeed.TensorSpec(shape, dtype), or a tuple or dict of them.",
                        origin=self.origin,
                    )
                )

    @property
    def element_spec(self) -> Any:
        """What the user gave."""
        return self.signature

    @property
    def size(self) -> int:
        """Not known."""
        return UNKNOWN


def signature_of(output_types: Any, output_shapes: Any, output_signature: Any) -> Any:
    """Return the specs that the arguments of from_generator stand for, the new one or the old two."""
    if output_signature is not None:
        for name, value in (("output_types", output_types), ("output_shapes", output_shapes)):
            if value is not None:
                raise _unclear(f"{name} and output_signature cannot both be given.")
        return output_signature
    if output_types is None:
        raise _unclear("from_generator does not know what the elements are.")
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
    """Return what stands in `value` where `structure` has its leaves; deeper branches stay whole.

    A value of `absent` may stand for a whole branch, and then serves each of its leaves.
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
    # A namedtuple is a tuple too, and any mapping is as good as a dict.
    return Mapping if issubclass(type(structure), Mapping) else type(structure)


def _unlike(structure: object, value: object) -> str:
    return described(
        f"{shortened(value)} has not the structure {outline(structure, DATA)}.",
        fix="give both the same nesting, keys and container types.",
    )


def _unclear(what: str) -> TypeError:
    return TypeError(
        described(what, fix="pass output_signature=evenfeed.TensorSpec(shape, dtype) alone.")
    )
