"""Writing TFRecord files: `tf.io.TFRecordWriter` and `tf.io.TFRecordOptions`."""

import zlib
from types import TracebackType
from typing import IO, Any, Final, Self, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import FailedPreconditionError, described
from evenfeed.formats.bytes.filesystems import named, naming, open_file, path_in
from evenfeed.formats.bytes.inflating import FORMS
from evenfeed.formats.tfrecord.framing import FOOTER, header_of, masked

_FLUSH_MODES: Final = {
    None: zlib.Z_NO_FLUSH,
    "": zlib.Z_NO_FLUSH,
    "N": zlib.Z_NO_FLUSH,
    "S": zlib.Z_SYNC_FLUSH,
    "F": zlib.Z_FULL_FLUSH,
}
_footer: Final = FOOTER.pack


def _compression(value: Any) -> str:
    if value is not None and value not in ("", *FORMS):
        raise ValueError(
            described(
                f"Not a valid compression_type: {shortened(value)}.",
                fix='pass "GZIP", "ZLIB", or None.',
            )
        )
    return value or ""


@final
class TFRecordOptions:
    """Options for writing a TFRecord file.

    Args:
        compression_type: "GZIP", "ZLIB", or None.
        flush_mode: What `flush` does with compressed data: "N" nothing, "S" a sync flush, "F" a full flush.
        input_buffer_size: Accepted for compatibility; ignored.
        output_buffer_size: Accepted for compatibility; ignored.
        window_bits: Ignored; any reader can read the default window.
        compression_level: 0 to 9; by default zlib's default.
        compression_method: Ignored; zlib has only one.
        mem_level: How much memory zlib uses, 1 to 9.
        compression_strategy: zlib's strategy, as a number.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.TFRecordOptions(compression_type="GZIP").compression_type
        'GZIP'
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        compression_type: str | None = None,
        flush_mode: str | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.compression_type = _compression(compression_type)
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    def compressor(self) -> Any:
        """Return a zlib compressor for one file; None without compression."""
        if not self.compression_type:
            return None
        return zlib.compressobj(
            -1 if self.compression_level is None else self.compression_level,
            zlib.DEFLATED,
            FORMS[self.compression_type],
            self.mem_level or zlib.DEF_MEM_LEVEL,
            self.compression_strategy or zlib.Z_DEFAULT_STRATEGY,
        )


@final
class TFRecordWriter:
    """Writes records to a TFRecord file that TensorFlow can also read.

    Args:
        path: Path of the file; an existing file is replaced.
        options: `TFRecordOptions`, or only the compression: "GZIP" or "ZLIB".

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> path = tempfile.mkdtemp() + "/few.tfrecord"
        >>> with tf.io.TFRecordWriter(path) as writer:
        ...     writer.write(b"one")
        ...     writer.write(b"two")
        >>> [record.item() for record in tf.data.TFRecordDataset(path)]
        [b'one', b'two']
    """

    def __init__(self, path: Any, options: TFRecordOptions | str | None = None) -> None:
        self._file: IO[bytes] | None = None
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(options)
        self._pack = options.compressor()
        self._flush_mode = _FLUSH_MODES.get(options.flush_mode, zlib.Z_NO_FLUSH)
        self._path = path_in(path, "path")
        self._file = open_file(self._path, "wb")

    def write(self, record: bytes) -> None:
        """Append one record."""
        payload = record if type(record) is bytes else _payload(record)
        data = header_of(len(payload)) + payload + _footer(masked(payload))
        packed = data if self._pack is None else self._pack.compress(data)
        file = self._file or self._open_file()
        try:
            file.write(packed)
        except OSError as error:
            raise named(self._path, error) from error

    def flush(self) -> None:
        """Flush written records to the operating system; compressed data according to `flush_mode`."""
        file = self._open_file()
        with naming(self._path):
            if self._pack is not None and self._flush_mode != zlib.Z_NO_FLUSH:
                file.write(self._pack.flush(self._flush_mode))
            file.flush()

    def close(self) -> None:
        """Finish the file. Closing it twice is allowed."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with naming(self._path), file:
            if self._pack is not None:
                file.write(self._pack.flush())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()  # as in TensorFlow, dropping the writer keeps its records

    def _open_file(self) -> IO[bytes]:
        if self._file is None:
            raise FailedPreconditionError(
                "The writer is closed.", fix="write before close(), or inside the with block."
            )
        return self._file


def _payload(record: Any) -> bytes:
    if isinstance(record, bytes | bytearray):
        return bytes(record)
    if isinstance(record, str):
        return record.encode()
    held = getattr(record, "item", None)  # a string element of a dataset: a scalar array
    if held is not None and getattr(record, "shape", None) == () and isinstance(held(), bytes):
        return held()
    raise TypeError(
        described(
            f"A record must be bytes, but got {shortened(record)}.",
            fix="write example.SerializeToString().",
        )
    )
