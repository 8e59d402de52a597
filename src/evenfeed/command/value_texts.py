"""What values look like, in a few words: their range, some texts, the size of pictures."""

import io
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from evenfeed.core.lazy import pil_image

_LONGEST: Final = 30  # characters of a text that are shown
_SHOWN: Final = 3  # texts that are shown


class Values(NamedTuple):
    """The values of a feature, one array per row."""

    name: str
    arrays: Sequence[Any]


def summary_of(values: Values) -> str:
    """Describe the values of a feature."""
    parts = [array_of(array).ravel() for array in values.arrays]
    every = np.concatenate(parts) if parts else np.zeros(0)
    if not len(every):
        return ""
    if every.dtype.kind in "OSU":
        return _of_texts([as_bytes(value) for value in every])
    if every.dtype.kind == "b":
        return ", ".join(str(value) for value in np.unique(every))
    if every.dtype.kind == "c":
        return "complex"
    if every.dtype.kind != "f":
        return f"{every.min()} to {every.max()}"
    numbers = every[every == every]  # noqa: PLR0124 - NaN is not equal to itself
    if not len(numbers):
        return "NaN"
    nan = ", NaN" if len(numbers) < len(every) else ""
    return f"{numbers.min():g} to {numbers.max():g}{nan}"


def array_of(value: Any) -> Any:
    """Return a value as an array. NumPy alone would cut off the zeros at the end of bytes."""
    return np.array(value, object) if isinstance(value, bytes | str) else np.asarray(value)


def as_bytes(value: Any) -> bytes:
    """Return a text as bytes."""
    return value.encode() if isinstance(value, str) else bytes(value)


def _of_texts(texts: Sequence[bytes]) -> str:
    pictures = {picture for text in texts if (picture := picture_in(text))}
    if pictures:
        first = min(pictures)
        return first if len(pictures) == 1 else f"{first} and other sizes"
    if all(readable(text) is not None for text in texts):
        return ", ".join(shown_text(text) for text in list(dict.fromkeys(texts))[:_SHOWN])
    lengths = [len(text) for text in texts]
    low, high = min(lengths), max(lengths)
    return f"{low:,} bytes" if low == high else f"{low:,} to {high:,} bytes"


def picture_in(content: bytes) -> str | None:
    """Return the format and the size of a picture; None for other content."""
    if not content.startswith((b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM", b"RIFF")):
        return None
    try:
        with pil_image.open(io.BytesIO(content)) as picture:
            return f"{picture.format} of {picture.width} x {picture.height}"
    except ImportError:
        return "a picture"
    except (OSError, SyntaxError):  # Pillow's for damaged ones
        return None


def readable(text: bytes) -> str | None:
    """Return a text that a person can read; None for other bytes."""
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return None
    return decoded if all(c.isprintable() or c in "\t\r\n" for c in decoded) else None


def shown_text(text: bytes) -> str:
    """Return a text for a line of output, cut off if it is long; other bytes by their number."""
    decoded = readable(text)
    if decoded is None:
        return picture_in(text) or f"{len(text):,} bytes"
    return repr(decoded if len(decoded) <= _LONGEST else decoded[:_LONGEST] + "…")


def shown_value(value: Any) -> str:
    """Return the value of one feature of a row for a line of output."""
    array = array_of(value)
    if array.dtype.kind in "OSU":
        parts = [shown_text(as_bytes(part)) for part in array.ravel()[: _SHOWN + 1]]
    else:
        parts = [
            f"{part:g}" if array.dtype.kind == "f" else str(part) for part in array.ravel()[:9]
        ]
    if not array.ndim:
        return parts[0]
    more = ", …" if array.size > len(parts) else ""
    shape = f" of shape {list(array.shape)}" if array.ndim > 1 or more else ""
    return f"[{', '.join(parts)}{more}]{shape}"


def without_place(error: Exception) -> str:
    """Return an error message without its `at:` line, which would name our own code on the command line."""
    return "\n".join(line for line in str(error).splitlines() if not line.startswith("  at:  "))
