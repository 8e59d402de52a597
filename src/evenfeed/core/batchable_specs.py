"""`BatchableSpec`: specs of values other than arrays that can be batched."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TypeSpec


class BatchableSpec(TypeSpec):
    """The spec of values other than arrays that can be batched: ragged tensors, sparse tensors and datasets."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> TensorShape:
        """The shape of a value; its first axis is what `unbatch` splits."""

    @abstractmethod
    def batched(self, length: int | None) -> "BatchableSpec":
        """Return the spec of a batch of `length` values; None if the length is unknown."""

    @abstractmethod
    def unbatched(self) -> TypeSpec:
        """Return the spec of the rows of a value."""

    @abstractmethod
    def stacked(self, values: Sequence[Any]) -> Any:
        """Return a batch of values that have this spec. There may be none.

        Raises:
            InvalidArgumentError: Their shapes do not fit.
        """

    @abstractmethod
    def rows_of(self, value: Any) -> Any:
        """Return the rows of a value that has this spec, as a column of a Block."""

    @abstractmethod
    def stand_in(self, length: int) -> Any:
        """Return a value with this spec, for probing a function, with `length` for unknown lengths."""

    @property
    def rows_are_counted(self) -> bool:
        """Whether `unbatch` knows the number of rows if the first length is known."""
        return True

    def as_argument(self) -> TypeSpec:
        """Return the spec of a value as a function gets it."""
        return self


def spec_of_argument(spec: TypeSpec) -> TypeSpec:
    """Return the spec of a value as a function gets it."""
    return spec.as_argument() if isinstance(spec, BatchableSpec) else spec
