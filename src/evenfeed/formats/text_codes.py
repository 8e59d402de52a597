"""Texts in other codes: base64, compressed bytes, and examples as JSON."""

import base64
import binascii
import zlib
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.errors import DataLossError, InvalidArgumentError, described
from evenfeed.core.handles import applied
from evenfeed.core.lazy import json_format
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_values import bytes_array
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.formats.bytes.inflating import FORMS
from evenfeed.formats.example.example_protos import message_class

_LETTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:  # noqa: A002 - TensorFlow's name
    """Encode texts in web-safe base64.

    Args:
        input: Texts of any shape.
        pad: Add "=" until the length is a multiple of 4.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.encode_base64(["a", "bc?"]).tolist()
        [b'YQ', b'YmM_']
    """
    del name
    return applied(EncodeBase64(bool(pad)), input)


def decode_base64(input: Any, name: str | None = None) -> Any:  # noqa: A002 - TensorFlow's name
    """Decode texts from web-safe base64, with or without "=" at the end.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.decode_base64(["YQ", "YmM_"]).tolist()
        [b'a', b'bc?']
    """
    del name
    return applied(DecodeBase64(), input)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:  # noqa: A002 - TensorFlow's name
    """Decompress texts.

    Args:
        bytes: Texts of any shape.
        compression_type: "ZLIB", "GZIP", or "" for none.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import zlib
        >>> import evenfeed as tf
        >>> tf.io.decode_compressed(zlib.compress(b"hello"), "ZLIB").item()
        b'hello'
    """
    del name
    if compression_type not in ("", *FORMS):
        raise InvalidArgumentError(
            f"compression_type must be one of '', ZLIB, GZIP, but got {compression_type!r}.",
            fix='pass "ZLIB" or "GZIP".',
        )
    return applied(Decompress(compression_type), bytes)


def decode_json_example(json_examples: Any, name: str | None = None) -> Any:
    """Convert examples from JSON to the bytes that `parse_example` reads.

    Examples:
        >>> import evenfeed as tf
        >>> record = tf.io.decode_json_example('{"features": {"feature": {"a": {"int64List": {"value": [7]}}}}}')
        >>> tf.io.parse_single_example(record, {"a": tf.io.FixedLenFeature([], tf.int64)})["a"].tolist()
        7
    """
    del name
    return applied(FromJson(), json_examples)


class TextCode(RowKernel):
    """A kernel that converts each text."""

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(given[0].shape, dtypes.string)

    def one(self, *parts: Array) -> Array:
        texts = parts[0]
        if texts.dtype != dtypes.string:
            raise TypeError(
                described(
                    f"The function takes text, but got a tensor of {dtypes.name_of(texts.dtype)}.",
                    fix="pass bytes, or a tensor of them.",
                )
            )
        return bytes_array([self.converted(text) for text in texts.ravel()]).reshape(texts.shape)

    @abstractmethod
    def converted(self, value: bytes) -> bytes:
        """Convert one text."""


@final
@dataclass(frozen=True)
class EncodeBase64(TextCode):
    """Encodes texts."""

    pad: bool

    def converted(self, value: bytes) -> bytes:
        code = base64.urlsafe_b64encode(value)
        return code if self.pad else code.rstrip(b"=")


@final
@dataclass(frozen=True)
class DecodeBase64(TextCode):
    """Decodes texts."""

    def converted(self, value: bytes) -> bytes:
        code = value.rstrip(b"=")
        try:
            if len(value) - len(code) > 2 or not _LETTERS.issuperset(code):
                raise binascii.Error("it has other characters")
            return base64.urlsafe_b64decode(code + b"=" * (-len(code) % 4))
        except binascii.Error as error:
            raise InvalidArgumentError(
                f"{value[:40]!r} is not web-safe base64: {error}.",
                fix="encode it with evenfeed.io.encode_base64, or base64.urlsafe_b64encode.",
            ) from error


@final
@dataclass(frozen=True)
class Decompress(TextCode):
    """Decompresses texts."""

    form: str

    def converted(self, value: bytes) -> bytes:
        if not self.form:
            return value
        try:
            return zlib.decompress(value, FORMS[self.form])
        except zlib.error as error:
            raise DataLossError(
                f"{len(value)} bytes cannot be decompressed as {self.form}: {error}.",
                fix='pass the compression_type that they were compressed with: "ZLIB" or "GZIP".',
            ) from error


@final
@dataclass(frozen=True)
class FromJson(TextCode):
    """Converts examples from JSON."""

    def converted(self, value: bytes) -> bytes:
        example = message_class("Example")()
        try:
            json_format.Parse(value, example)
        except (json_format.ParseError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(
                f"{value[:60]!r} is not an Example in JSON: {error}.",
                fix='pass for example {"features": {"feature": {"a": {"int64List": {"value": [1]}}}}}.',
            ) from error
        return example.SerializeToString(deterministic=True)
