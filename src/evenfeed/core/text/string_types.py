"""Conversions between text and bytes, and the types that hold them: TensorFlow's `tf.compat`."""

import numbers
import os
from typing import Any, Final

import numpy as np

from evenfeed.core.errors import described

bytes_or_text_types: Final = (bytes, str)
complex_types: Final = (numbers.Complex, np.number)
integral_types: Final = (numbers.Integral, np.integer)
real_types: Final = (numbers.Real, np.integer, np.floating)


def as_bytes(bytes_or_text: str | bytes | bytearray, encoding: str = "utf-8") -> bytes:
    r"""Return text as bytes; bytes stay as they are.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.as_bytes("é")
        b'\xc3\xa9'
    """
    match bytes_or_text:
        case bytes():
            return bytes_or_text
        case bytearray():
            return bytes(bytes_or_text)
        case str():
            return bytes_or_text.encode(encoding)
        case _:
            raise _not_text(bytes_or_text)


def as_text(bytes_or_text: str | bytes, encoding: str = "utf-8") -> str:
    """Return bytes as text; text stays as it is.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.as_text(b"abc")
        'abc'
    """
    match bytes_or_text:
        case str():
            return bytes_or_text
        case bytes():
            return bytes_or_text.decode(encoding)
        case _:
            raise _not_text(bytes_or_text)


def as_str(bytes_or_text: str | bytes, encoding: str = "utf-8") -> str:
    """Return bytes as text; another name of `as_text`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.as_str(b"abc")
        'abc'
    """
    return as_text(bytes_or_text, encoding)


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Return bytes as text, and anything else as `str` shows it.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.as_str_any(b"abc"), tf.compat.as_str_any(5)
        ('abc', '5')
    """
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """Return the text of a path object; anything else stays as it is.

    Examples:
        >>> import pathlib
        >>> import evenfeed as tf
        >>> tf.compat.path_to_str(pathlib.PurePosixPath("a") / "b")
        'a/b'
    """
    return as_str_any(path.__fspath__()) if isinstance(path, os.PathLike) else path


def dimension_value(dimension: int | None) -> int | None:
    """Return the length of an axis of a shape: it is an integer already, or None if it is unknown.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.dimension_value(tf.TensorShape([2, None])[0])
        2
    """
    return dimension


def _not_text(value: object) -> TypeError:
    return TypeError(
        described(
            f"Expected text or bytes, but got {value!r}.",
            fix="pass a str or bytes; for a tensor, x.numpy().",
        )
    )
