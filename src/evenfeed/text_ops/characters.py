"""Functions of single texts: case, whitespace, length and substrings."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, shortened
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import bytes_array
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.text_ops.each_text import EachText, applied, check_text

_BYTE, _UTF8_CHAR = "BYTE", "UTF8_CHAR"

# The bytes of a UTF-8 character after its first one are 0b10xxxxxx.
_CONTINUES, _HIGH_BITS = 0x80, 0xC0

_LETTERS: Final = np.uint8(26)
_MOST: Final = 1 << 62  # no text is longer
_SPACES: Final = np.isin(np.arange(256), list(b" \t\n\v\f\r"))


def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    r"""Convert texts to lower case: ASCII letters only, or all letters with `encoding="utf-8"`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.lower(["CamelCase", "ÄB"]).tolist()
        [b'camelcase', b'\xc3\x84b']
    """
    del name
    return applied(ChangeCase(up=False, unicode=_is_utf8(encoding)), input)


def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Convert texts to upper case: ASCII letters only, or all letters with `encoding="utf-8"`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.upper("straße", encoding="utf-8").item().decode()
        'STRASSE'
    """
    del name
    return applied(ChangeCase(up=True, unicode=_is_utf8(encoding)), input)


def strip(input: Any, name: str | None = None) -> Any:
    r"""Remove ASCII whitespace from both ends of each text.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.strip(["\nTensorFlow", "     "]).tolist()
        [b'TensorFlow', b'']
    """
    del name
    return applied(Strip(), input)


def length(input: Any, unit: str = _BYTE, name: str | None = None) -> Any:
    """Return the length of each text, as int32.

    Args:
        input: The texts.
        unit: "BYTE" counts bytes, "UTF8_CHAR" counts characters.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.length(["Hello", "🙂"]).tolist()
        [5, 4]
        >>> tf.strings.length(["Hello", "🙂"], unit="UTF8_CHAR").tolist()
        [5, 1]
    """
    del name
    return applied(Length(_characters(unit)), input)


def substr(input: Any, pos: Any, len: Any, unit: str = _BYTE, name: str | None = None) -> Any:
    """Return the part of each text that starts at `pos` and has `len` bytes or characters.

    Args:
        input: The texts.
        pos: Where a part starts; a negative number counts from the end. One for all texts, or one for each.
        len: How long a part is, at most. The same shape as `pos`.
        unit: "BYTE" counts bytes, "UTF8_CHAR" counts characters.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: A text is shorter than `pos`, or the shapes do not match.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.substr(["Hello", "World"], 1, 3).tolist()
        [b'ell', b'orl']
    """
    del name
    starts, counts = to_array(pos), to_array(len)
    for argument, array in (("pos", starts), ("len", counts)):
        if array.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"{argument} must be integers, but got {shortened(array)}.", fix="pass ints."
            )
    if starts.shape != counts.shape:
        raise InvalidArgumentError(
            f"pos and len should have the same shape, but got {starts.shape} and {counts.shape}.",
            fix="pass one pos and one len, or as many of each.",
        )
    if not starts.ndim:
        return applied(TextPart(int(starts), int(counts), _characters(unit)), input)
    kernel = Substring(
        starts.shape,
        tuple(starts.ravel().tolist()),
        tuple(counts.ravel().tolist()),
        _characters(unit),
    )
    return applied(kernel, input)


@final
@dataclass(frozen=True)
class ChangeCase(EachText):
    """Converts texts to lower or upper case."""

    up: bool
    unicode: bool

    gives: DType = dtypes.string

    def each(self, values: list[Any]) -> Array:
        if self.unicode:
            texts = (value.decode("utf-8", "replace") for value in values)
            return bytes_array([(t.upper() if self.up else t.lower()).encode() for t in texts])
        return bytes_array([value.upper() if self.up else value.lower() for value in values])

    def in_buffer(self, texts: Texts) -> Texts | None:
        # The whole buffer is converted, so most of it should be used.
        if self.unicode or not texts.size or 2 * _used(texts) < len(texts.data):
            return None
        first = np.uint8(ord("a" if self.up else "A"))
        letters = (texts.data - first) < _LETTERS  # other bytes wrap around
        changed = texts.data ^ (
            letters.view(np.uint8) << np.uint8(5)
        )  # the two cases differ in one bit
        return Texts(changed, texts.starts, texts.stops, texts.origins)


@final
@dataclass(frozen=True)
class Strip(EachText):
    """Removes whitespace from both ends."""

    gives: DType = dtypes.string

    def each(self, values: list[Any]) -> Array:
        return bytes_array([value.strip() for value in values])

    def in_buffer(self, texts: Texts) -> Texts | None:
        """Move the ends of the texts, one byte of all texts at a time; few have more than a few spaces."""
        starts, stops = texts.starts.copy().reshape(-1), texts.stops.copy().reshape(-1)
        rows = np.flatnonzero(starts < stops)
        while len(rows):
            rows = rows[_SPACES[texts.data[stops[rows] - 1]]]
            stops[rows] -= 1
            rows = rows[starts[rows] < stops[rows]]
        rows = np.flatnonzero(starts < stops)
        while len(rows):
            rows = rows[_SPACES[texts.data[starts[rows]]]]
            starts[rows] += 1
            rows = rows[starts[rows] < stops[rows]]
        return Texts(texts.data, starts.reshape(texts.shape), stops.reshape(texts.shape))


@final
@dataclass(frozen=True)
class Length(EachText):
    """Counts the bytes or characters of each text."""

    characters: bool

    gives: DType = dtypes.int32

    def each(self, values: list[Any]) -> Array:
        if self.characters:
            return np.array([_first_bytes(value).sum() for value in values], np.int32)
        return np.fromiter(map(len, values), np.int32, len(values))

    def in_buffer(self, texts: Texts) -> Array | None:
        return None if self.characters else (texts.stops - texts.starts).astype(np.int32)


@final
@dataclass(frozen=True)
class TextPart(EachText):
    """Returns the same part of each text."""

    start: int
    count: int
    characters: bool

    gives: DType = dtypes.string

    def each(self, values: list[Any]) -> Array:
        part = partial(_part, start=self.start, count=self.count, characters=self.characters)
        return bytes_array([part(at, value) for at, value in enumerate(values)])

    def in_buffer(self, texts: Texts) -> Texts | None:
        sizes = texts.stops - texts.starts
        if self.characters or (sizes < (self.start if self.start >= 0 else -self.start)).any():
            return None
        first = (texts.starts if self.start >= 0 else texts.stops) + self.start
        most = min(self.count, _MOST)
        stops = texts.stops if most < 0 else first + np.minimum(most, texts.stops - first)
        return Texts(texts.data, first, stops)


@final
@dataclass(frozen=True)
class Substring(RowKernel):
    """Returns a part of each text, which differs within an element."""

    shape: tuple[int, ...]
    starts: tuple[int, ...]
    counts: tuple[int, ...]
    characters: bool

    def spec(self, *given: TensorSpec) -> TensorSpec:
        check_text(given[0])
        return TensorSpec(None, dtypes.string)

    def one(self, *parts: Array) -> Array:
        texts = parts[0]
        starts, counts = (
            np.array(numbers, np.int64).reshape(self.shape)
            for numbers in (self.starts, self.counts)
        )
        try:
            joint = np.broadcast_arrays(texts, starts, counts)
        except ValueError:
            raise InvalidArgumentError(
                f"Texts of shape {texts.shape} and pos of shape {self.shape} do not broadcast.",
                fix="pass one pos and one len, or one of each per text.",
            ) from None
        rows = zip(*(array.ravel().tolist() for array in joint), strict=True)
        found = [_part(at, *row, characters=self.characters) for at, row in enumerate(rows)]
        return bytes_array(found).reshape(joint[0].shape)


def _part(index: int, text: bytes, start: int, count: int, *, characters: bool) -> bytes:
    ends = _character_ends(text) if characters else None
    size = len(text) if ends is None else len(ends) - 1
    if not -size <= start <= size:
        raise InvalidArgumentError(
            f"pos {start} out of range for string {shortened(text)} at index {index}.",
            fix=f"pass a pos from {-size} to {size}.",
        )
    first = start + size if start < 0 else start
    # As in TensorFlow, a negative length means the rest of the bytes, but no characters.
    if count < 0 and ends is not None:
        if start < 0:
            raise InvalidArgumentError(
                f"len {count} is negative at pos {start}, which counts from the end.",
                fix="pass the number of characters.",
            )
        return b""
    stop = size if count < 0 else min(first + count, size)
    return text[first:stop] if ends is None else text[ends[first] : ends[stop]]


def _first_bytes(text: bytes) -> Array:
    """Return for each byte whether it is the first of a UTF-8 character."""
    return (np.frombuffer(text, np.uint8) & _HIGH_BITS) != _CONTINUES


def _character_ends(text: bytes) -> list[int]:
    return [*np.flatnonzero(_first_bytes(text)).tolist(), len(text)]


def _used(texts: Texts) -> int:
    return int((texts.stops - texts.starts).sum())


def _is_utf8(encoding: str) -> bool:
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(
            f"encoding must be 'utf-8' or '', but got {encoding!r}.",
            fix="pass 'utf-8' to change all letters, or '' for ASCII letters only.",
        )
    return encoding == "utf-8"


def _characters(unit: str) -> bool:
    if unit not in (_BYTE, _UTF8_CHAR):
        raise InvalidArgumentError(
            f"unit must be 'BYTE' or 'UTF8_CHAR', but got {unit!r}.", fix="pass one of the two."
        )
    return unit == _UTF8_CHAR
