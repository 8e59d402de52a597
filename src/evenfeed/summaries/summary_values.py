"""What summaries hold: scalars, histograms, images, text, audio, and any tensor."""

# ruff: noqa: PLR0913, PLR0917 - TensorFlow's arguments

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.text.text_values import bytes_array
from evenfeed.formats.audio_files import wav_file
from evenfeed.formats.example.example_protos import message_class
from evenfeed.formats.tensor_bytes import tensor_proto
from evenfeed.images.colours import converted
from evenfeed.images.png_writing import png_file
from evenfeed.summaries.summary_writers import Made, recorded
from evenfeed.tensors.control.scopes import get_current_name_scope
from evenfeed.tensors.creation import Tensor, convert_to_tensor

_BUCKETS: Final = 30
_WAV: Final = b"\x10\x0b"  # the encoding in TensorBoard's AudioPluginData


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Write a number, as float32.

    In a compiled function it is written each time the function runs. Of several replicas, the first one writes.

    Args:
        name: The name, after those of the scopes of names.
        data: A scalar.
        step: The step; by default that of `summary.experimental.set_step` or `as_default(step=)`.
        description: A text in Markdown for TensorBoard.

    Returns:
        True if it was written: if there is a default writer that records.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tf.summary.create_file_writer(tempfile.mkdtemp()).as_default():
        ...     bool(tf.summary.scalar("loss", 0.5, step=1))
        True
    """
    tensor = convert_to_tensor(data)
    if tensor.ndim:
        raise ValueError(
            described(
                f"scalar {name!r} needs a scalar, but got shape {tuple(tensor.shape)}.",
                fix="pass a mean or a sum, or write a histogram.",
            )
        )
    return recorded(_made("scalars", name, description, _as_float), tensor, step)


def histogram(
    name: str,
    data: Any,
    step: Any = None,
    buckets: int | None = None,
    description: str | None = None,
) -> Tensor:
    """Write how many values fall into each of some buckets of equal width.

    Args:
        name: As for `scalar`.
        data: Numbers of any shape.
        step: As for `scalar`.
        buckets: The number of buckets, by default 30.
        description: As for `scalar`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tf.summary.create_file_writer(tempfile.mkdtemp()).as_default():
        ...     bool(tf.summary.histogram("weights", tf.range(100), step=1))
        True
    """
    fill = partial(_filled, count=_BUCKETS if buckets is None else max(0, int(buckets)))
    return recorded(_made("histograms", name, description, fill), convert_to_tensor(data), step)


def image(
    name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None
) -> Tensor:
    """Write images.

    Args:
        name: As for `scalar`.
        data: Images, as [images, height, width, channels] with 1 to 4 channels: uint8, or floats from 0 to 1.
        step: As for `scalar`.
        max_outputs: The most images to write.
        description: As for `scalar`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tf.summary.create_file_writer(tempfile.mkdtemp()).as_default():
        ...     bool(tf.summary.image("input", tf.zeros([1, 8, 8, 3]), step=1))
        True
    """
    tensor = _of_rank(name, data, 4, "[images, height, width, channels]")
    draw = partial(_drawn, most=max(0, int(max_outputs)))
    return recorded(_made("images", name, description, draw), tensor, step)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Tensor:
    """Write sounds, as WAV files.

    Args:
        name: As for `scalar`.
        data: Sounds, as [sounds, samples, channels]: floats from -1 to 1.
        sample_rate: The number of samples per second.
        step: As for `scalar`.
        max_outputs: The most sounds to write.
        encoding: "wav".
        description: As for `scalar`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tf.summary.create_file_writer(tempfile.mkdtemp()).as_default():
        ...     bool(tf.summary.audio("noise", tf.zeros([1, 100, 1]), 8000, step=1))
        True
    """
    if encoding not in (None, "wav"):
        raise ValueError(described(f"Unknown encoding: {encoding!r}.", fix='pass "wav".'))
    tensor = _of_rank(name, data, 3, "[sounds, samples, channels]")
    play = partial(_played, rate=int(to_array(sample_rate)), most=max(0, int(max_outputs)))
    return recorded(_made("audio", name, description, play, _WAV), tensor, step)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Write texts, which TensorBoard shows as Markdown; a table if there are two axes.

    Args:
        name: As for `scalar`.
        data: Texts of any shape.
        step: As for `scalar`.
        description: As for `scalar`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tf.summary.create_file_writer(tempfile.mkdtemp()).as_default():
        ...     bool(tf.summary.text("notes", "**learning rate** 0.1", step=1))
        True
    """
    array = to_array(data)
    if array.dtype != dtypes.string:
        raise InvalidArgumentError(
            f"text {name!r} needs text, but got {dtypes.name_of(array.dtype)}.",
            fix="convert it first: evenfeed.strings.as_string(data).",
        )
    return recorded(_made("text", name, description, np.asarray), array, step)


def write(
    tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None
) -> Tensor:
    """Write any tensor.

    Args:
        tag: The whole name: scopes do not change it.
        tensor: A tensor, or a function that returns one.
        step: As for `scalar`.
        metadata: A SummaryMetadata message, or its bytes, which says which plugin of TensorBoard shows it.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tf.summary.create_file_writer(tempfile.mkdtemp()).as_default():
        ...     bool(tf.summary.write("weights", [1.0, 2.0], step=1))
        True
    """
    del name
    content = metadata if isinstance(metadata, bytes | None) else metadata.SerializeToString()
    about = None if content is None else message_class("SummaryMetadata").FromString(content)
    data = tensor() if callable(tensor) else tensor
    return recorded(partial(_message, tag, about), convert_to_tensor(data), step)


def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Tensor:
    """Write a Summary message, given as bytes.

    Examples:
        >>> import evenfeed as tf
        >>> bool(tf.summary.experimental.write_raw_pb(b"", step=1))
        False
    """
    del name
    return recorded(
        lambda array: message_class("Summary").FromString(array.item()), to_array(tensor), step
    )


@contextmanager
def summary_scope(
    name: str, default_name: str = "summary", values: object = None
) -> Generator[tuple[str, str]]:
    """Return the tag of a summary, and its scope, for functions that write one.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.name_scope("train"), tf.summary.experimental.summary_scope("loss") as (tag, scope):
        ...     tag
        'train/loss'
    """
    del values
    tag = _tag(name or default_name)
    yield tag, f"{tag}/"


def _tag(name: str) -> str:
    scope = get_current_name_scope()
    return f"{scope}/{name}" if scope else name


def _made(
    plugin: str, name: str, description: str | None, values: Any, content: bytes = b""
) -> Made:
    about = message_class("SummaryMetadata")(summary_description=description or "")
    about.plugin_data.plugin_name, about.plugin_data.content = plugin, content
    tag = _tag(name)
    return lambda array: _message(tag, about, values(array))


def _message(tag: str, about: Any, array: Array) -> Any:
    summary = message_class("Summary")()
    summary.value.add(tag=tag, tensor=tensor_proto(array), metadata=about)
    return summary


def _of_rank(name: str, data: Any, rank: int, shape: str) -> Any:
    tensor = convert_to_tensor(data)
    if tensor.ndim != rank:
        raise ValueError(
            described(
                f"{name!r} needs {shape}, but got shape {tuple(tensor.shape)}.",
                fix="add a missing first axis with data[None].",
            )
        )
    return tensor


def _as_float(array: Array) -> Array:
    return array.astype(np.float32)


def _filled(array: Array, count: int) -> Array:
    """Return the left edge, the right edge and the number of values of each bucket."""
    values = array.ravel().astype(np.float64)
    if not values.size or not count:
        return np.zeros((count, 3))
    least, most = values.min(), values.max()
    if least == most:
        ends = np.full(count, most)
        return np.stack([ends, ends, [0] * (count - 1) + [values.size]], axis=1)
    places = np.floor((values - least) / ((most - least) / count))
    counts = np.bincount(np.minimum(places, count - 1).astype(np.int64), minlength=count)
    edges: Array = np.linspace(float(least), float(most), count + 1)
    return np.stack([edges[:-1], edges[1:], counts], axis=1)


def _drawn(array: Array, most: int) -> Array:
    """Return the width and the height as texts, then the images as PNG files."""
    pixels = converted(array[:most], dtypes.uint8, saturate=True)
    sizes = [str(length).encode() for length in (array.shape[2], array.shape[1])]
    return bytes_array([*sizes, *(png_file(one, -1) for one in pixels)])


def _played(array: Array, rate: int, most: int) -> Array:
    files = [wav_file(one, rate) for one in array[:most]]
    return bytes_array([part for file in files for part in (file, b"")]).reshape(-1, 2)
