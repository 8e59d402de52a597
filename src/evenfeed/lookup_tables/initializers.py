"""Where the keys and values of a table come from: tensors, or the lines of a text file."""

from abc import ABC, abstractmethod
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.text.text_values import bytes_array
from evenfeed.formats.bytes.filesystems import open_file, path_in


@final
class TextFileIndex:
    """Which part of a line is a key or value, besides a column number.

    Attributes:
        WHOLE_LINE: The whole line, as text.
        LINE_NUMBER: The number of the line, counted from 0.
    """

    WHOLE_LINE: Final = -2
    LINE_NUMBER: Final = -1


class TableInitializer(ABC):
    """Where the keys and values of a table come from."""

    @property
    @abstractmethod
    def key_dtype(self) -> DType:
        """The dtype of the keys."""

    @property
    @abstractmethod
    def value_dtype(self) -> DType:
        """The dtype of the values."""

    @abstractmethod
    def entries(self) -> tuple[Array, Array]:
        """Return the keys and the values, as vectors."""


@final
class KeyValueTensorInitializer(TableInitializer):
    """Takes keys and values from tensors.

    Args:
        keys: The keys.
        values: One value for each key.
        key_dtype: The dtype of the keys; by default that of `keys`.
        value_dtype: The dtype of the values; by default that of `values`.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> words = tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1])
        >>> tf.lookup.StaticHashTable(words, default_value=-1).lookup(tf.constant(["b", "?"])).tolist()
        [1, -1]
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: Any = None,
        value_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        del name
        self._keys = to_array(keys, None if key_dtype is None else dtypes.as_dtype(key_dtype))
        self._values = to_array(
            values, None if value_dtype is None else dtypes.as_dtype(value_dtype)
        )

    @property
    def key_dtype(self) -> DType:
        return dtypes.as_dtype(self._keys.dtype)

    @property
    def value_dtype(self) -> DType:
        return dtypes.as_dtype(self._values.dtype)

    def entries(self) -> tuple[Array, Array]:
        if self._keys.shape != self._values.shape:
            raise InvalidArgumentError(
                f"Expected values of shape {list(self._keys.shape)}, but got {list(self._values.shape)}.",
                fix="pass one value for each key.",
            )
        return self._keys.reshape(-1), self._values.reshape(-1)


@final
class TextFileInitializer(TableInitializer):
    r"""Takes keys and values from the lines of a text file.

    Args:
        filename: The path of the file.
        key_dtype: The dtype of the keys.
        key_index: The column of the keys, or a member of `TextFileIndex`.
        value_dtype: The dtype of the values.
        value_index: The column of the values, or a member of `TextFileIndex`.
        vocab_size: How many lines to read; by default all. A file with fewer lines is an error.
        delimiter: What separates columns.
        name: Accepted for compatibility.
        value_index_offset: Added to line numbers that are values.

    Examples:
        >>> import tempfile, evenfeed as tf
        >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        ...     _ = file.write("cat\ndog\n")
        ...     file.flush()
        ...     words = tf.lookup.TextFileInitializer(
        ...         file.name,
        ...         tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
        ...         tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
        ...     )
        ...     tf.lookup.StaticHashTable(words, -1).lookup(tf.constant(["dog", "cow"])).tolist()
        [1, -1]
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        del name
        self._filename = path_in(filename, "filename")
        self._key, self._value = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        self._key_index, self._value_index = int(key_index), int(value_index)
        self._most = vocab_size
        self._delimiter = delimiter.encode()
        self._offset = int(value_index_offset)
        _check_column("key", self._key_index, self._key)
        _check_column("value", self._value_index, self._value)

    @property
    def key_dtype(self) -> DType:
        return self._key

    @property
    def value_dtype(self) -> DType:
        return self._value

    def entries(self) -> tuple[Array, Array]:
        with open_file(self._filename, "rb") as file:
            lines = _lines(file.read(), self._filename)
        if self._most is not None:
            if len(lines) < self._most:
                raise InvalidArgumentError(
                    f"Invalid vocab_size in {self._filename}: expected {self._most} lines, but got {len(lines)}.",
                    fix="omit vocab_size, or pass the number of lines.",
                )
            lines = lines[: self._most]
        keys = self._column(lines, self._key_index, self._key, 0)
        return keys, self._column(lines, self._value_index, self._value, self._offset)

    def _column(self, lines: list[bytes], index: int, dtype: DType, offset: int) -> Array:
        if index == TextFileIndex.LINE_NUMBER:
            return np.arange(offset, offset + len(lines), dtype=dtype)
        texts = lines
        if index != TextFileIndex.WHOLE_LINE:
            texts = [self._field(line, number, index) for number, line in enumerate(lines)]
        if dtype == dtypes.string:
            return bytes_array(texts)
        return np.array([self._number(t, n, dtype) for n, t in enumerate(texts)], dtype)

    def _field(self, line: bytes, number: int, index: int) -> bytes:
        fields = line.split(self._delimiter)
        if index < len(fields):
            return fields[index]
        raise InvalidArgumentError(
            f"Invalid number of columns in {self._filename}: line {number} has {len(fields)}, but column "
            f"{index} was asked for.",
            fix="check the column numbers, which start at 0, and the delimiter.",
        )

    def _number(self, text: bytes, line: int, dtype: DType) -> Any:
        try:
            return float(text) if dtype.kind == "f" else int(text)
        except ValueError:
            raise InvalidArgumentError(
                f"Field {text.decode('utf-8', 'replace')!r} in line {line} of {self._filename} is not a valid "
                f"{dtypes.name_of(dtype)}.",
                fix="check the dtype, the column and the delimiter.",
            ) from None


def _lines(content: bytes, path: str) -> list[bytes]:
    lines = [line.removesuffix(b"\r") for line in content.removesuffix(b"\n").split(b"\n")]
    if content and b"" in lines:
        raise InvalidArgumentError(
            f"Invalid content in {path}: line {lines.index(b'')} is empty.",
            fix="remove empty lines.",
        )
    return lines if content else []


def _check_column(what: str, index: int, dtype: DType) -> None:
    if index < TextFileIndex.WHOLE_LINE:
        raise ValueError(
            described(
                f"{what}_index must be at least {TextFileIndex.WHOLE_LINE}, but got {index}.",
                fix="pass a column number, or a member of evenfeed.lookup.TextFileIndex.",
            )
        )
    if index == TextFileIndex.LINE_NUMBER and dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(
            described(
                f"{what}_dtype must be int64 for line numbers, but got {dtypes.name_of(dtype)}.",
                fix=f"pass {what}_dtype=evenfeed.int64.",
            )
        )
