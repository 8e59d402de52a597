"""Text as bytes: what str, bytes and arrays of them become, and when two texts are equal.

TensorFlow's rule is that a str is its UTF-8 bytes. Python and NumPy never find bytes equal to a str.
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
    """Return an array of text as one of bytes, itself where it holds nothing else."""
    if array.dtype == dtypes.string and all(type(item) is bytes for item in array.flat):
        return array
    return bytes_array(array.reshape(-1).tolist()).reshape(array.shape)


def bytes_array(leaves: Sequence[object]) -> _Array:
    """Return texts as a vector of bytes."""
    out = np.empty(len(leaves), dtypes.string)
    out[:] = [_bytes(leaf) for leaf in leaves]
    return out


def encoded(text: str) -> bytes:
    """Return a str as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            described(
                f"{shortened(text)} cannot become bytes: it holds half of a surrogate pair.",
                fix="pass bytes; for the name of a file, os.fsencode(name).",
            )
        ) from None


def texts_in(value: object) -> _Array | None:
    """Return str, bytes, or lists and arrays of them, as an array of bytes; None for anything else."""
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
    """Take single texts out of arrays, which NumPy leaves in a list where others are none."""
    for place, item in enumerate(array.flat):
        if isinstance(item, np.ndarray) and item.ndim == 0:
            array.flat[place] = item.item()
    return array


def compared(texts: _Array, other: object, *, equal: bool) -> Any:
    """Say of each text whether it is equal to `other`, or unequal, as TensorFlow's operators do.

    Values broadcast, and shapes that do not are unequal as a whole.

    Raises:
        TypeError: `other` holds numbers.
    """
    if other is None:
        return not equal
    found = texts_in(other)
    if found is None:
        return _left_to(other)
    try:
        same = np.asarray(np.equal(texts, found), np.bool_)
    except ValueError:  # the shapes do not broadcast
        return np.asarray(not equal)
    return same if equal else ~same


def appended(left: object, right: object) -> Any:
    """Append texts to texts, value by value, as TensorFlow's `+` does.

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
            f"Texts of the shapes {one.shape} and {two.shape} cannot be added value by value.",
            fix="give them one shape, or shapes that broadcast.",
        ) from None


def unlike_shapes(one: object, two: object) -> InvalidArgumentError:
    """Return the error for values that cannot be compared with each other."""
    return InvalidArgumentError(
        f"Tensors of the shapes {one} and {two} cannot be compared value by value.",
        fix="give them one shape, or shapes that broadcast.",
    )


def _left_to(other: object) -> Any:
    """Refuse to compare text with numbers; leave it to any other object whether it is equal to text."""
    if not isinstance(other, (int, float, complex, list, tuple, _BecomesArray)):
        return NotImplemented
    raise TypeError(
        described(
            f"Text cannot be compared with {shortened(cast('object', other))}.",
            fix="compare it with a str, with bytes, or with a list or an array of these.",
        )
    )


def _bytes(item: object) -> bytes:
    if isinstance(item, str):
        return encoded(item)
    if isinstance(item, bytes):
        return bytes(item)
    raise ValueError(
        described(
            f"{shortened(item)} of type {type(item).__name__} is no text, in an array of objects.",
            fix="pass text, bytes, or an array with a numeric dtype.",
        )
    )
