"""Converts text (str, bytes and arrays of them) to bytes, and compares texts.

In TensorFlow a str equals its UTF-8 bytes. In Python and NumPy bytes never equal a str.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError, described, shortened

_Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@runtime_checkable
class _BecomesArray(Protocol):
    """An array of any library."""

    def __array__(self) -> _Array: ...


def as_bytes(array: _Array) -> _Array:
    """Convert an array of text to bytes. Returns the array itself if it holds only bytes."""
    if array.dtype == dtypes.string and all(type(item) is bytes for item in array.flat):
        return array
    return bytes_array(array.reshape(-1).tolist()).reshape(array.shape)


def bytes_array(leaves: Sequence[object]) -> _Array:
    """Convert a sequence of texts to a vector of bytes."""
    out = np.empty(len(leaves), dtypes.string)
    out[:] = [_bytes(leaf) for leaf in leaves]
    return out


def encoded(text: str) -> bytes:
    """Encode a str as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            described(
                f"{shortened(text)} cannot be encoded as UTF-8: it has half of a surrogate pair.",
                fix="pass bytes; for a file name, os.fsencode(name).",
            )
        ) from None


def texts_in(value: object) -> _Array | None:
    """Convert str, bytes, or lists and arrays of them to an array of bytes; None for anything else."""
    if isinstance(value, (str, bytes)):
        return bytes_array([value]).reshape(())
    if isinstance(value, (list, tuple)):
        array: _Array = _without_arrays(np.asarray(cast("Sequence[object]", value), dtypes.string))
    elif isinstance(value, _BecomesArray):
        array = np.asarray(value)
    else:
        return None
    if array.dtype.kind not in "OSUT":
        return None
    if array.dtype == dtypes.string and not all(isinstance(i, (str, bytes)) for i in array.flat):
        return None
    return as_bytes(array)


def _without_arrays(array: _Array) -> _Array:
    """Unwrap scalar arrays, which NumPy keeps as objects if a list mixes them with plain texts."""
    for place, item in enumerate(array.flat):
        if isinstance(item, np.ndarray) and item.ndim == 0:
            array.flat[place] = item.item()
    return array


def compared(texts: _Array, other: object, *, equal: bool) -> Any:
    """Compare each text with `other` by `==` or `!=`, as TensorFlow's operators do.

    Values broadcast. If the shapes do not broadcast, the answer is one bool: unequal.

    Raises:
        TypeError: `other` holds numbers.
    """
    if other is None:
        return not equal
    found = texts_in(other)
    if found is None:
        return _not_comparable(other)
    try:
        same = np.asarray(np.equal(texts, found), np.bool_)
    except ValueError:  # the shapes do not broadcast
        return np.asarray(not equal)
    return same if equal else ~same


def appended(left: object, right: object) -> Any:
    """Append texts to texts elementwise, as TensorFlow's `+` does.

    Raises:
        InvalidArgumentError: One side holds numbers, or the shapes do not broadcast.
    """
    one, two = texts_in(left), texts_in(right)
    if one is not None and two is not None:
        return _appended(one, two)
    other = right if two is None else left
    if not isinstance(other, (int, float, complex, list, tuple, _BecomesArray)):
        return NotImplemented
    raise InvalidArgumentError(
        f"Text cannot be added to {shortened(cast('object', other))}.",
        fix="pass a str, bytes, or a list or an array of these; for a number, str(number).",
    )


def _appended(one: _Array, two: _Array) -> _Array:
    try:
        return np.asarray(np.add(one, two), dtypes.string)
    except ValueError:
        raise InvalidArgumentError(
            f"Cannot add texts of shapes {one.shape} and {two.shape}: the shapes do not broadcast.",
            fix="pass tensors of the same shape, or of shapes that broadcast.",
        ) from None


def unlike_shapes(one: object, two: object) -> InvalidArgumentError:
    """Return the error for a comparison of shapes that do not broadcast."""
    return InvalidArgumentError(
        f"Cannot compare tensors of shapes {one} and {two}: the shapes do not broadcast.",
        fix="pass tensors of the same shape, or of shapes that broadcast.",
    )


def _not_comparable(other: object) -> Any:
    """Raise for a comparison of text with numbers. Any other object decides for itself."""
    if not isinstance(other, (int, float, complex, list, tuple, _BecomesArray)):
        return NotImplemented
    raise TypeError(
        described(
            f"Text cannot be compared with {shortened(cast('object', other))}.",
            fix="compare it with a str, with bytes, or with a list or an array of these.",
        )
    )


def _bytes(item: Any) -> bytes:
    if isinstance(item, str):
        return encoded(item)
    if isinstance(item, bytes):
        return bytes(item)
    array = np.asanyarray(item)
    if array is item and array.shape == () and array.dtype == dtypes.string:
        return _bytes(array[()])  # an element of a dataset, which NumPy keeps as it is
    raise ValueError(
        described(
            f"An array of objects must hold only text, but got {shortened(item)} of type {type(item).__name__}.",
            fix="pass text, bytes, or an array with a numeric dtype.",
        )
    )


def single_text(contents: _Array, name: str = "contents") -> bytes:
    """Check that an argument is a scalar string, and return its bytes."""
    if contents.dtype != dtypes.string:
        raise TypeError(
            described(f"{name} must be bytes, but got {contents.dtype.name}.", fix=_READ_IT)
        )
    if contents.ndim:
        raise InvalidArgumentError(
            f"`{name}` must be scalar, but got shape {list(contents.shape)}.",
            fix="decode one image at a time, before calling batch.",
        )
    return cast("bytes", contents.item())


_READ_IT = "pass the result of evenfeed.io.read_file, or bytes."
