"""TensorFlow's reader classes: `TFRecordDataset`, `TextLineDataset` and `FixedLengthRecordDataset`."""

from collections.abc import Callable
from functools import partial
from typing import Any

from evenfeed.core import dtypes
from evenfeed.core.arguments import compression_type_of, whole_number
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import TensorSpec
from evenfeed.dataset import Dataset, plan_of
from evenfeed.formats.bytes.filesystems import as_text, paths_in
from evenfeed.formats.fixed_records import FixedRecordFile
from evenfeed.formats.reader import DataFile
from evenfeed.formats.text_lines import LineFile
from evenfeed.formats.tfrecord.records import RecordFile
from evenfeed.plan.buffering import AUTOTUNE
from evenfeed.plan.files import Files
from evenfeed.plan.node import Node
from evenfeed.plan.templates import part_of_file

_TEXT = TensorSpec([], dtypes.string)
_FIX = "pass a path, a list of paths, or a dataset of paths."


class FileDataset(Dataset):
    """The base class of datasets that read files."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}V2 element_spec={self.element_spec!r}>"


class TextLineDataset(FileDataset):
    r"""A dataset of the lines of text files, as bytes without the trailing `\n` or `\r\n`.

    Args:
        filenames: A path, several, or a dataset of paths. `gs://` and other remote paths require
            `evenfeed[remote]`.
        compression_type: "GZIP" or "ZLIB"; "" or None for uncompressed files.
        buffer_size: Accepted for compatibility; ignored.
        num_parallel_reads: The number of files to interleave. By default, and with AUTOTUNE, files are
            read one after the other.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import tempfile, pathlib
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "words.txt"
        >>> path.write_bytes(b"one\ntwo\r\n\nfour")
        14
        >>> list(tf.data.TextLineDataset(path).as_numpy_iterator())
        [b'one', b'two', b'', b'four']
        >>> files = tf.data.Dataset.list_files(folder.name + "/*.txt")
        >>> [b.tolist() for b in files.flat_map(tf.data.TextLineDataset).batch(3)]
        [[b'one', b'two', b''], [b'four']]
        >>> folder.cleanup()
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        del name
        check_buffer(buffer_size)
        kind = partial(LineFile, compression=compression_type_of(compression_type))
        super().__init__(reading(filenames, kind, num_parallel_reads))


class FixedLengthRecordDataset(FileDataset):
    """A dataset of the records of files with fixed-length records, as bytes.

    The records of uncompressed files have positions: `shuffle`, `shard` and `skip` read only the records
    that they need.

    Args:
        filenames: A path, several, or a dataset of paths.
        record_bytes: The length of a record in bytes.
        header_bytes: The number of bytes to skip at the start of each file.
        footer_bytes: The number of bytes to skip at the end of each file.
        buffer_size: Accepted for compatibility; ignored.
        compression_type: "GZIP" or "ZLIB"; "" or None for uncompressed files.
        num_parallel_reads: The number of files to interleave. By default, and with AUTOTUNE, files are
            read one after the other.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import tempfile, pathlib
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "records"
        >>> path.write_bytes(b"HEADaabbcc")
        10
        >>> list(tf.data.FixedLengthRecordDataset(path, 2, header_bytes=4).as_numpy_iterator())
        [b'aa', b'bb', b'cc']
        >>> folder.cleanup()
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        del name
        check_buffer(buffer_size)
        kind = partial(
            FixedRecordFile,
            compression=compression_type_of(compression_type),
            record_bytes=at_least(record_bytes, 1, "record_bytes"),
            header_bytes=at_least(header_bytes or 0, 0, "header_bytes"),
            footer_bytes=at_least(footer_bytes or 0, 0, "footer_bytes"),
        )
        super().__init__(reading(filenames, kind, num_parallel_reads))


class TFRecordDataset(FileDataset):
    """A dataset of the records of TFRecord files, as bytes. Every checksum is verified.

    A missing file raises `NotFoundError` when it is reached. A corrupt file raises `DataLossError` with
    the byte offset, after all records before it; reading can then continue with the next readable record.

    Args:
        filenames: A path, several, or a dataset of paths.
        compression_type: "GZIP" or "ZLIB"; "" or None for uncompressed files.
        buffer_size: Accepted for compatibility; ignored.
        num_parallel_reads: The number of files to interleave. By default, and with AUTOTUNE, files are
            read one after the other.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = folder.name + "/numbers.tfrecord"
        >>> with tf.io.TFRecordWriter(path) as writer:
        ...     for number in range(3):
        ...         writer.write(b"record %d" % number)
        >>> list(tf.data.TFRecordDataset([path]).skip(1).as_numpy_iterator())
        [b'record 1', b'record 2']
        >>> folder.cleanup()
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        del name
        check_buffer(buffer_size)
        kind = partial(RecordFile, compression=compression_type_of(compression_type))
        super().__init__(reading(filenames, kind, num_parallel_reads))


def reading(
    filenames: Any,
    kind: Callable[[str], DataFile],
    num_parallel_reads: int | None,
    spec: Any = _TEXT,
) -> Node:
    """Return the plan that reads files: one after the other, or interleaved."""
    in_turn = _in_turn(num_parallel_reads)
    if not isinstance(filenames, Dataset):
        part = part_of_file(filenames, kind, spec) if in_turn == 1 else None
        if part is not None:
            return part
        names = paths_in(filenames, "filenames")
        if in_turn == 1:
            return _files(kind, spec, names)
        filenames = Dataset.from_tensor_slices(as_text(names))
    _check_names(filenames.element_spec)
    one = partial(_one_file, kind, spec)
    if in_turn == 1:
        return plan_of(filenames.flat_map(one))
    return plan_of(filenames.interleave(one, cycle_length=in_turn, block_length=1))


def _files(kind: Callable[[str], DataFile], spec: Any, names: list[str]) -> Node:
    return Files(tuple(map(kind, names)), spec, as_reader=True)


def _one_file(kind: Callable[[str], DataFile], spec: Any, name: Any) -> Dataset:
    return Dataset(reading(name, kind, None, spec))


def _check_names(spec: Any) -> None:
    if not isinstance(spec, TensorSpec) or spec.dtype != dtypes.string:
        raise TypeError(
            described(f"filenames must hold paths, but its elements are {spec}.", fix=_FIX)
        )
    if spec.shape.rank not in (0, None):
        raise TypeError(
            described(
                f"Each element of filenames must be a single path, but is {spec}.",
                fix="call unbatch() on the dataset of paths.",
            )
        )


def _in_turn(num_parallel_reads: int | None) -> int:
    """Return the number of files to interleave. As in TensorFlow, AUTOTUNE reads one after the other."""
    if num_parallel_reads is None:
        return 1
    number = whole_number(num_parallel_reads, "num_parallel_reads")
    return 1 if number == AUTOTUNE else at_least(number, 1, "num_parallel_reads")


def check_buffer(buffer_size: int | None) -> None:
    """Raise unless `buffer_size` is a valid number of bytes. Its value is not used."""
    if buffer_size is not None:
        at_least(buffer_size, 0, "buffer_size")


def at_least(value: int, least: int, name: str) -> int:
    """Check that an argument is an integer of at least `least`, and return it."""
    number = whole_number(value, name)
    if number < least:
        raise InvalidArgumentError(
            f"{name} must be at least {least}, but got {number}.",
            fix=f"pass {name}={least} or more.",
        )
    return number
