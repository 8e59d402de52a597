"""Reading, writing, parsing and decoding files: TensorFlow's `tf.io`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.errors import described
from evenfeed.core.handles import applied
from evenfeed.core.publish import publish, refusal
from evenfeed.core.specs import TensorSpec
from evenfeed.core.tensor_types import host_tensor
from evenfeed.core.traced.kernel_stages import RowKernel, stands_for_part
from evenfeed.formats.bytes.filesystems import (
    as_text,
    folder_for,
    matching_paths,
    naming,
    open_file,
    path_in,
)
from evenfeed.formats.csv_decoding import decode_csv
from evenfeed.formats.example.example_parsing import (
    parse_example,
    parse_single_example,
)
from evenfeed.formats.example.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
)
from evenfeed.formats.example.sequence_parsing import (
    parse_sequence_example,
    parse_single_sequence_example,
)
from evenfeed.formats.sparse_bytes import (
    deserialize_many_sparse,
    serialize_many_sparse,
    serialize_sparse,
)
from evenfeed.formats.tensor_bytes import decode_raw, parse_tensor, serialize_tensor
from evenfeed.formats.text_codes import (
    decode_base64,
    decode_compressed,
    decode_json_example,
    encode_base64,
)
from evenfeed.formats.tfrecord.record_writer import TFRecordOptions, TFRecordWriter
from evenfeed.images.decoding import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    extract_jpeg_shape,
    is_jpeg,
)
from evenfeed.images.encoding import encode_jpeg, encode_png
from evenfeed.io import gfile

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_raw",
    "decode_webp",
    "deserialize_many_sparse",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "write_file",
]


def read_file(filename: Any, name: str | None = None) -> Array:
    """Read a whole file, and return its bytes as a scalar string.

    In `Dataset.map` it runs in `num_parallel_calls` threads.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.write_file(folder.name + "/a/b.txt", "hello")
        >>> tf.io.read_file(folder.name + "/a/b.txt").item()
        b'hello'
        >>> folder.cleanup()
    """
    del name
    if stands_for_part(filename):
        return applied(_ReadFile(), filename)
    return host_tensor(_content(filename))


def _content(filename: Any) -> Array:
    with open_file(path_in(filename, "filename")) as file:
        return _scalar(file.read())


@final
@dataclass(frozen=True)
class _ReadFile(RowKernel):
    """Reads a file for each element."""

    waits = True

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        return TensorSpec([], dtypes.string)

    def one(self, *parts: Array) -> Array:
        return _content(parts[0])


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a string or bytes to a file. Creates missing parent directories.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> tf.io.write_file(folder.name + "/new/x", b"bytes")
        >>> tf.io.gfile.exists(folder.name + "/new/x")
        True
        >>> folder.cleanup()
    """
    del name
    text = to_array(contents)
    if text.dtype != dtypes.string or text.ndim:
        raise TypeError(
            described(
                f"contents must be a scalar string, but got {contents!r}.",
                fix="pass text or bytes.",
            )
        )
    path = path_in(filename, "filename")
    folder_for(path)
    with naming(path), open_file(path, "wb") as file:
        file.write(text.item())


def matching_files(pattern: Any, name: str | None = None) -> Array:
    """Return the sorted names of all files that match one or more patterns; possibly none.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.matching_files("no-such-folder/*").shape
        (0,)
    """
    del name
    return host_tensor(as_text(matching_paths(pattern, "pattern")))


def match_filenames_once(pattern: Any, name: str | None = None) -> Array:
    """Return the sorted names of all files that match, as `matching_files` does. They do not change later.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.match_filenames_once("no-such-folder/*").shape
        (0,)
    """
    return matching_files(pattern, name)


def _scalar(content: bytes) -> Array:
    scalar = np.empty((), dtypes.string)
    scalar[()] = content
    return scalar


publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
