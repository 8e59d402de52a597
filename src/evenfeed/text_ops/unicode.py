"""Unicode: code points and characters of texts, and conversion between encodings."""

import codecs
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Final, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.text.text_values import bytes_array
from evenfeed.text_ops.each_text import EachText, applied
from evenfeed.text_ops.splitting import TextPieces, pieces_of

_REPLACEMENT: Final = 0xFFFD
_OUTPUTS: Final = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
# Marks invalid bytes: surrogate number n, which no valid text contains, stands for n invalid bytes.
_MARKED: Final = "evenfeed.marked"
_FIRST_SURROGATE, _SURROGATES = 0xD800, 0x800
# What `replace_control_characters` replaces.
_CONTROLS: Final = frozenset(range(0x20))


def _mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return chr(_FIRST_SURROGATE + error.end - error.start), error.end


codecs.register_error(_MARKED, _mark)


@final
@dataclass(frozen=True)
class Decoding:
    """How to read texts of an encoding.

    Attributes:
        encoding: The name of the encoding, for Python's codecs.
        errors: "strict", "replace" or "ignore".
        replacement: The character that replaces invalid bytes.
        controls: Whether control characters are replaced too.
    """

    encoding: str
    errors: str
    replacement: int = _REPLACEMENT
    controls: bool = False

    def characters(self, text: bytes) -> tuple[list[str], list[int]]:
        """Return the characters of a text, and the position of the first byte of each."""
        found: list[str] = []
        starts: list[int] = []
        at = 0
        for character in text.decode(self.encoding, _MARKED):
            shown, length = self._shown(character)
            if shown is not None:
                found.append(shown)
                starts.append(at)
            at += length
        return found, starts

    def decoded(self, text: bytes) -> list[str]:
        """Return the characters of a text."""
        try:
            plain = text.decode(self.encoding)
        except UnicodeDecodeError:
            return self.characters(text)[0]
        return self.characters(text)[0] if self.controls else list(plain)

    def _shown(self, character: str) -> tuple[str | None, int]:
        """Return what a character becomes, None if it is dropped, and its length in bytes."""
        invalid = ord(character) - _FIRST_SURROGATE
        if not 0 < invalid < _SURROGATES:
            replaced = self.controls and ord(character) in _CONTROLS
            length = len(character.encode(self.encoding))
            return chr(self.replacement) if replaced else character, length
        if self.errors == "strict":
            raise InvalidArgumentError(
                f"Invalid formatting on input string: it is not valid {self.encoding}.",
                fix="pass errors='replace' or errors='ignore'.",
            )
        return None if self.errors == "ignore" else chr(self.replacement), invalid


def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Return the code points of each text: a vector for a scalar, otherwise a RaggedTensor.

    Args:
        input: The texts.
        input_encoding: Their encoding, such as "UTF-8".
        errors: "replace" invalid bytes, "ignore" them, or raise with "strict".
        replacement_char: The code point that replaces invalid bytes.
        replace_control_characters: Whether to replace control characters as well.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.unicode_decode("hé", "UTF-8").tolist()
        [104, 233]
    """
    del name
    how = _decoding(input_encoding, errors, replacement_char, replace_control_characters)
    return pieces_of(CodePoints(how), input)


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Return the code points of each text, and where each starts; see `unicode_decode`.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.strings.unicode_decode_with_offsets("hé!", "UTF-8")]
        [[104, 233, 33], [0, 1, 3]]
    """
    del name
    how = _decoding(input_encoding, errors, replacement_char, replace_control_characters)
    return pieces_of(CodePoints(how), input), pieces_of(Offsets(how), input)


def unicode_split(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> Any:
    r"""Split each text into its characters: a vector for a scalar, otherwise a RaggedTensor.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.unicode_split(["hé", "a"], "UTF-8").to_list()
        [[b'h', b'\xc3\xa9'], [b'a']]
    """
    del name
    return pieces_of(Characters(_decoding(input_encoding, errors, replacement_char)), input)


def unicode_split_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> Any:
    """Split each text into its characters, and return where each starts; see `unicode_split`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.unicode_split_with_offsets("hé!", "UTF-8")[1].tolist()
        [0, 1, 3]
    """
    del name
    how = _decoding(input_encoding, errors, replacement_char)
    return pieces_of(Characters(how), input), pieces_of(Offsets(how), input)


def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    name: str | None = None,
) -> Any:
    r"""Encode code points as texts: the last axis becomes one text.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.unicode_encode([104, 233], "UTF-8").item()
        b'h\xc3\xa9'
    """
    del name
    encode = partial(_encoded, _output(output_encoding), _checked_errors(errors), replacement_char)
    if isinstance(input, RaggedTensor):
        if isinstance(input.values, RaggedTensor):
            return input.with_values(
                unicode_encode(input.values, output_encoding, errors, replacement_char)
            )
        return computed_tensor(bytes_array([encode(row) for row in input.to_list()]))
    points = to_array(input)
    *outer, length = points.shape
    rows = points.reshape(prod(outer), length).tolist()
    return computed_tensor(bytes_array(list(map(encode, rows))).reshape(outer))


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = _REPLACEMENT,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    r"""Convert texts from one encoding to another.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.unicode_transcode("hé", "UTF-8", "UTF-16-BE").item()
        b'\x00h\x00\xe9'
    """
    del name
    how = _decoding(input_encoding, errors, replacement_char, replace_control_characters)
    return applied(Transcode(how, _output(output_encoding)), input)


@final
@dataclass(frozen=True)
class CodePoints(TextPieces):
    """The code points of texts."""

    how: Decoding
    gives: DType = dtypes.int32

    def pieces(self, texts: list[bytes]) -> list[list[Any]]:
        return [list(map(ord, self.how.decoded(text))) for text in texts]


@final
@dataclass(frozen=True)
class Characters(TextPieces):
    """The characters of texts, in UTF-8."""

    how: Decoding

    def pieces(self, texts: list[bytes]) -> list[list[Any]]:
        # A character keeps the encoding of the text.
        return [
            [c.encode(self.how.encoding, "replace") for c in self.how.decoded(t)] for t in texts
        ]


@final
@dataclass(frozen=True)
class Offsets(TextPieces):
    """The position of the first byte of each character."""

    how: Decoding
    gives: DType = dtypes.int64

    def pieces(self, texts: list[bytes]) -> list[list[Any]]:
        return [self.how.characters(text)[1] for text in texts]


@final
@dataclass(frozen=True)
class Transcode(EachText):
    """Converts texts to another encoding."""

    how: Decoding
    output: str
    gives: DType = dtypes.string

    def each(self, values: list[Any]) -> Array:
        return bytes_array(["".join(self.how.decoded(v)).encode(self.output) for v in values])


def _encoded(output: str, errors: str, replacement: int, points: list[int]) -> bytes:
    characters: list[str] = []
    for point in points:
        if 0 <= point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF:
            characters.append(chr(point))
        elif errors == "strict":
            raise InvalidArgumentError(
                f"Code point {point} is out of range for Unicode, or is a surrogate.",
                fix="pass errors='replace' or errors='ignore'.",
            )
        elif errors == "replace":
            characters.append(chr(replacement))
    return "".join(characters).encode(output)


def _decoding(encoding: str, errors: str, replacement: Any, controls: bool = False) -> Decoding:
    try:
        known = codecs.lookup(encoding).name
    except LookupError:
        raise InvalidArgumentError(
            f"Could not create converter for input encoding: {encoding}.",
            fix="pass an encoding that Python knows, such as 'UTF-8'.",
        ) from None
    return Decoding(known, _checked_errors(errors), int(replacement), bool(controls))


def _output(encoding: str) -> str:
    if encoding not in _OUTPUTS:
        raise InvalidArgumentError(
            f"output_encoding must be one of {', '.join(_OUTPUTS)}, but got {encoding!r}.",
            fix="pass 'UTF-8'.",
        )
    return encoding


def _checked_errors(errors: str) -> str:
    if errors not in ("strict", "replace", "ignore"):
        raise InvalidArgumentError(
            f"errors must be 'strict', 'replace' or 'ignore', but got {errors!r}.",
            fix="pass one of the three.",
        )
    return errors
