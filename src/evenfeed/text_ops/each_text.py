"""Runs a function of texts immediately on arrays, or as a kernel of a traced function."""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array, cannot_hold, is_tensor, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import Handle
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.traced.kernel_stages import Kernel, results_of


class EachText(Kernel):
    """A kernel with one result for each text. The results have the shape of the texts.

    Attributes:
        gives: The dtype of the results.
        takes: The dtype that it takes; None for any.
    """

    gives: DType
    takes: ClassVar[DType | None] = dtypes.string
    stays_on_host: ClassVar[bool] = True
    takes_ragged: ClassVar[bool] = True

    @abstractmethod
    def each(self, values: list[Any]) -> Array:
        """Return the results for a list of texts, as a vector."""

    def in_buffer(self, texts: Texts) -> Texts | Array | None:
        """Return the results for texts in a buffer; None to compute them text by text."""
        del texts
        return None

    @final
    def specs(self, *given: TypeSpec) -> list[TypeSpec]:
        spec = given[0]
        if self.takes is not None:
            check_text(spec)
        if isinstance(spec, RaggedTensorSpec):
            return [spec.with_dtype(self.gives)]
        return [TensorSpec(cast("TensorSpec", spec).shape, self.gives)]

    @final
    def run(self, *columns: Column) -> list[Column]:
        column = columns[0]
        if isinstance(column, RaggedTensor):
            return [column.with_flat_values(self.of(column.flat_held))]
        if isinstance(column, list):
            return [self._of_list(column)]
        return [None if column is None else self.of(column)]

    def of(self, values: Array | Texts) -> Texts | Array:
        """Return the result for each value, in the same shape."""
        if isinstance(values, Texts):
            found = self.in_buffer(values)
            return self._of_array(np.asarray(values)) if found is None else found
        if values.dtype == dtypes.string and is_worth_it(values.size):
            held = Texts.of(values.ravel().tolist())
            found = self.in_buffer(held)
            return self._of_array(values) if found is None else found.reshape(values.shape)
        return self._of_array(values)

    def _of_array(self, array: Array) -> Array:
        return self.each(array.ravel().tolist()).reshape(array.shape)

    def _of_list(self, rows: Sequence[Array]) -> list[Any]:
        flat = self.each(list(chain.from_iterable(np.ravel(row).tolist() for row in rows)))
        stops = np.cumsum([row.size for row in rows])
        pieces = np.split(flat, stops[:-1])
        return [piece.reshape(row.shape) for piece, row in zip(pieces, rows, strict=True)]


def applied(kernel: Kernel, *values: Any) -> Any:
    """Run a kernel on values. Inside a trace, return placeholders for its result.

    A kernel of single texts keeps the rows of a ragged tensor.
    """
    found = results_of(kernel, *values)
    if found is not None:
        return found[0]
    if any(isinstance(value, Handle) for value in values):
        raise TypeError("A part of the element is combined with a value that is not one.")
    first = values[0]
    if isinstance(first, RaggedTensor) and isinstance(kernel, EachText):
        if kernel.takes == dtypes.string and first.dtype != dtypes.string:
            raise not_text(first.dtype)
        return first.with_flat_values(kernel.of(first.flat_held))
    columns = kernel.run(*(_checked(value, kernel)[None] for value in values))
    return computed_tensor(Block(tuple(columns), 1).cut_up().row(0)[0])


def text_array(value: Any) -> Array:
    """Return texts as an array.

    Raises:
        InvalidArgumentError: The value is a tensor of numbers.
        TypeError: The value holds Python numbers.
    """
    array = to_array(value)
    if array.dtype != dtypes.string:
        raise not_text(array.dtype) if is_tensor(value) else cannot_hold(value, dtypes.string)
    return array


def not_text(dtype: DType) -> InvalidArgumentError:
    """Return the error for a tensor that does not hold text."""
    return InvalidArgumentError(
        f"The function takes text, but got a tensor of {dtypes.name_of(dtype)}.",
        fix="convert numbers to text with evenfeed.strings.as_string.",
    )


def check_text(spec: TypeSpec) -> None:
    """Raise InvalidArgumentError unless a part of the element is text."""
    dtype = cast("TensorSpec | RaggedTensorSpec", spec).dtype
    if dtype != dtypes.string:
        raise not_text(dtype)


def _checked(value: Any, kernel: Kernel) -> Array:
    takes_any = isinstance(kernel, EachText) and kernel.takes is None
    return to_array(value) if takes_any else text_array(value)


def checked_text(value: Any, argument: str) -> bytes:
    """Return an option of a function as bytes; it must be one text that does not depend on the element."""
    array = to_array(value)
    if array.dtype != dtypes.string or array.ndim:
        raise cannot_hold(f"{argument}={value!r}", dtypes.string)
    return array.item()
