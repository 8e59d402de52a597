"""Reads and writes WAV files of 16 bits: `tf.audio.decode_wav` and `tf.audio.encode_wav`."""

import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import in_wanted_dtype
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import applied
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_values import single_text
from evenfeed.core.traced.kernel_stages import RowKernel

_FORMAT: Final = struct.Struct("<HHIIHH")
_SCALE: Final = 1 << 15


class DecodeWav(NamedTuple):
    """The samples of a WAV file, and how many there are per second."""

    audio: Any
    sample_rate: Any


def decode_wav(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> DecodeWav:
    """Decode a WAV file of 16 bits to floats from -1 to 1, as [samples, channels].

    Args:
        contents: The bytes of the file.
        desired_channels: Drop channels, or repeat the last one, until there are this many; -1 for those of the file.
        desired_samples: Drop samples, or add zeros, until there are this many; -1 for those of the file.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> file = tf.audio.encode_wav([[0.0], [0.5]], sample_rate=8000)
        >>> sound, rate = tf.audio.decode_wav(file)
        >>> sound.tolist(), int(rate)
        ([[0.0], [0.5]], 8000)
    """
    del name
    samples = applied(Samples(int(desired_channels), int(desired_samples)), contents)
    return DecodeWav(samples, applied(SampleRate(), contents))


def encode_wav(audio: Any, sample_rate: Any, name: str | None = None) -> Any:
    """Encode sounds as a WAV file of 16 bits.

    Args:
        audio: Floats from -1 to 1, as [samples, channels]. Others are clipped.
        sample_rate: The number of samples per second.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> len(tf.audio.encode_wav([[0.0], [0.5]], sample_rate=8000).item())
        48
    """
    del name
    return applied(EncodeWav(), in_wanted_dtype(audio, dtypes.float32), sample_rate)


def wav_file(audio: Array, rate: int) -> bytes:
    """Return the bytes of a WAV file."""
    if audio.ndim != 2 or not audio.shape[1]:
        raise InvalidArgumentError(
            f"audio must be 2-D, [samples, channels], but got shape {audio.shape}.",
            fix="add an axis for a single channel: audio[:, None].",
        )
    scaled = np.asarray(audio, np.float32) * np.float32(_SCALE)
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    content = rounded.clip(-_SCALE, _SCALE - 1).astype("<i2").tobytes()
    channels = audio.shape[1]
    about = _FORMAT.pack(1, channels, rate, rate * channels * 2, channels * 2, 16)
    inner = b"WAVEfmt " + struct.pack("<I", 16) + about + b"data"
    inner += struct.pack("<I", len(content)) + content
    return b"RIFF" + struct.pack("<I", len(inner)) + inner


@final
@dataclass(frozen=True)
class EncodeWav(RowKernel):
    """Encodes one sound."""

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        return TensorSpec([], dtypes.string)

    def one(self, *parts: Array) -> Array:
        audio, rate = parts
        if audio.dtype != dtypes.float32:
            raise InvalidArgumentError(
                f"audio must be float32, but got {audio.dtype.name}.",
                fix="convert it to floats from -1 to 1.",
            )
        if rate.ndim or int(rate) <= 0:
            raise InvalidArgumentError(
                f"sample_rate must be a positive integer, but got {rate.tolist()}.",
                fix="pass the number of samples per second.",
            )
        return to_array(wav_file(audio, int(rate)))


@final
@dataclass(frozen=True)
class Samples(RowKernel):
    """Decodes the samples of a file."""

    channels: int
    length: int

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        shape = [None if count < 0 else count for count in (self.length, self.channels)]
        return TensorSpec(shape, dtypes.float32)

    def one(self, *parts: Array) -> Array:
        content = single_text(parts[0])
        sound = _samples(content, _chunks(content))
        if self.channels >= 0:
            wanted = np.minimum(np.arange(self.channels), sound.shape[1] - 1)
            sound = sound[:, wanted]
        if self.length >= 0:
            missing = max(0, self.length - len(sound))
            sound = np.pad(sound[: self.length], [(0, missing), (0, 0)])
        return sound.astype(np.float32) / np.float32(_SCALE)


@final
@dataclass(frozen=True)
class SampleRate(RowKernel):
    """Reads the sample rate of a file."""

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        return TensorSpec([], dtypes.int32)

    def one(self, *parts: Array) -> Array:
        content = single_text(parts[0])
        return np.array(_format(_chunks(content))[1], np.int32)


def _samples(content: bytes, chunks: dict[bytes, bytes]) -> Array:
    channels, _ = _format(chunks)
    data = chunks.get(b"data")
    if data is None or len(data) % (2 * channels):
        raise _no_sound(content, "it has no whole samples")
    return np.frombuffer(data, "<i2").reshape(-1, channels)


def _format(chunks: dict[bytes, bytes]) -> tuple[int, int]:
    """Return the number of channels, and of samples per second."""
    about = chunks.get(b"fmt ", b"")
    if len(about) < _FORMAT.size:
        raise _no_sound(about, "it has no format")
    kind, channels, rate, _, _, bits = _FORMAT.unpack_from(about)
    if kind != 1 or bits != 16 or not channels:
        raise InvalidArgumentError(
            f"Can only read 16-bit PCM WAV files, but got format {kind} with {bits} bits.",
            fix="convert the file, for example with: ffmpeg -i sound.wav -c:a pcm_s16le out.wav.",
        )
    if rate >= 1 << 31:  # the sample rate is an int32
        raise _no_sound(about, f"it has {rate} samples per second")
    return channels, rate


def _chunks(content: bytes) -> dict[bytes, bytes]:
    """Return the parts of a file by their names."""
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise _no_sound(content, f"it starts with {content[:12]!r}")
    found: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= len(content):
        size = int.from_bytes(content[at + 4 : at + 8], "little")
        if at + 8 + size > len(content):
            raise _no_sound(content, "it is truncated")
        found.setdefault(content[at : at + 4], content[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return found


def _no_sound(content: bytes, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Invalid WAV data, {len(content)} bytes: {why}.", fix="check the file and its path."
    )
