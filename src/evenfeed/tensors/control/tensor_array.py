"""TensorArray: a list of tensors that is written in a loop and stacked after it."""

# ruff: noqa: ARG002 - TensorFlow's arguments; a list needs no sizes and names

from collections.abc import Sequence
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, OutOfRangeError, described
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.tensors.arrays.cutting import split as split_up
from evenfeed.tensors.arrays.cutting import unstack as unstacked
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor, convert_to_tensor, whole_numbers, zeros
from evenfeed.tensors.shaping import concat as concatenated
from evenfeed.tensors.shaping import stack as stacked


@final
class TensorArray:
    """A list of tensors. Methods that write return a changed copy.

    Args:
        dtype: The dtype of the tensors.
        size: The number of tensors.
        dynamic_size: Whether writing beyond the end makes it longer.
        clear_after_read: Accepted for compatibility, like the arguments after it, except `element_shape`.
        element_shape: The shape of the tensors, if they must have one.

    Examples:
        >>> import evenfeed as tf
        >>> array = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        >>> for i in range(3):
        ...     array = array.write(i, i * i)
        >>> array.stack().tolist()
        [0, 1, 4]
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        dtype: DTypeLike,
        size: object = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: object = None,
        flow: object = None,
        infer_shape: bool = True,
        element_shape: ShapeLike = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self._dtype = dtypes.as_dtype(dtype)
        self._grows = bool(dynamic_size)
        self._shape = TensorShape(element_shape)
        self._entries: list[Any] = [None] * (0 if size is None else known_integer(size, "size"))

    @property
    def dtype(self) -> DType:
        """The dtype of the tensors."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether writing beyond the end makes it longer."""
        return self._grows

    @property
    def element_shape(self) -> TensorShape:
        """The shape of the tensors, as far as it is known."""
        known = next((entry for entry in self._entries if entry is not None), None)
        return self._shape if known is None else TensorShape(known.shape)

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of tensors."""
        return convert_to_tensor(len(self._entries))

    def write(self, index: object, value: object, name: str | None = None) -> "TensorArray":
        """Return a copy with another tensor at this index."""
        place = known_integer(index, "index")
        if place < 0 or (place >= len(self._entries) and not self._grows):
            raise OutOfRangeError(
                f"The index {place} is outside of a TensorArray of size {len(self._entries)}.",
                fix="pass dynamic_size=True, or a larger size.",
            )
        missing = max(place + 1 - len(self._entries), 0)
        entries = [*self._entries, *[None] * missing]
        entries[place] = self._checked(value, self.element_shape)
        return self._with(entries)

    def read(self, index: object, name: str | None = None) -> Tensor:
        """Return the tensor at this index."""
        place = known_integer(index, "index")
        if not 0 <= place < len(self._entries):
            raise OutOfRangeError(
                f"The index {place} is outside of a TensorArray of size {len(self._entries)}.",
                fix="pass an index below size().",
            )
        return self._filled()[place]

    def stack(self, name: str | None = None) -> Tensor:
        """Return all tensors, stacked along a new first axis."""
        if not self._entries:
            return zeros([0, *(0 if n is None else n for n in self._shape or ())], self._dtype)
        return stacked(self._filled())

    def concat(self, name: str | None = None) -> Tensor:
        """Return all tensors, joined along their first axis."""
        return concatenated(self._filled(), 0)

    def gather(self, indices: object, name: str | None = None) -> Tensor:
        """Return the tensors with these indices, stacked."""
        places = whole_numbers(indices)
        assert places is not None
        return stacked([self.read(int(place)) for place in places])

    def unstack(self, value: object, name: str | None = None) -> "TensorArray":
        """Return a copy that holds the entries of a tensor along its first axis."""
        return self._replaced(unstacked(value))

    def scatter(self, indices: object, value: object, name: str | None = None) -> "TensorArray":
        """Return a copy with the entries of a tensor at these indices."""
        places = whole_numbers(indices)
        assert places is not None
        found = self
        for place, entry in zip(places, unstacked(value), strict=True):
            found = found.write(int(place), entry)
        return found

    def split(self, value: object, lengths: object, name: str | None = None) -> "TensorArray":
        """Return a copy that holds the parts of a tensor of these lengths."""
        return self._replaced(split_up(value, lengths))

    def identity(self) -> "TensorArray":
        """Return a copy."""
        return self._with(list(self._entries))

    def close(self, name: str | None = None) -> None:
        """Do nothing: memory is released with the object."""

    def _replaced(self, values: Sequence[object]) -> "TensorArray":
        return self._with([self._checked(value, self._shape) for value in values])

    def _checked(self, value: object, shape: TensorShape) -> Any:
        tensor = convert_to_tensor(value, dtype_hint=self._dtype)
        if not shape.is_compatible_with(tensor.shape):
            raise ValueError(
                described(
                    f"A tensor of shape {tuple(tensor.shape)} does not fit a TensorArray of {shape}.",
                    fix="write tensors of one shape.",
                )
            )
        return tensor

    def _filled(self) -> list[Any]:
        known = next((entry for entry in self._entries if entry is not None), None)
        if known is None:
            raise InvalidArgumentError(
                "No tensor was written to the TensorArray.", fix="write to it first."
            )
        return [
            zeros(known.shape, self._dtype) if entry is None else entry for entry in self._entries
        ]

    def _with(self, entries: Sequence[Any]) -> "TensorArray":
        copy = TensorArray(self._dtype, dynamic_size=self._grows, element_shape=self._shape)
        copy._entries = list(entries)
        return copy
