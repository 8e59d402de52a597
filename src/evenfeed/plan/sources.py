"""Where elements come from."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import (
    NoneTensorSpec,
    TensorSpec,
    TypeSpec,
    type_spec_from_value,
)
from evenfeed.core.structure import DATA, pack
from evenfeed.plan.node import Node
from evenfeed.plan.windows import ElementValue, common_spec


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
