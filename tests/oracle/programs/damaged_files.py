"""Damaged and empty files behind transformations: which rows come, and where errors do."""

import gzip
import os
import tempfile
import zlib
from pathlib import Path

import numpy as np


def records(tf, ask):
    del ask
    with tempfile.TemporaryDirectory() as folder:
        good = _written(tf, folder, "good", range(50, 56))
        files = {
            "a first length": _flipped(_written(tf, folder, "first", range(6)), 0),
            "a checksum of a length": _flipped(_written(tf, folder, "crc", range(6)), 3 * 19 + 9),
            "a length in the middle": _flipped(_written(tf, folder, "middle", range(6)), 3 * 19),
            "nothing at all": _cut(_written(tf, folder, "empty", range(6)), 0),
        }
        return {
            f"{what}, {others}, {way}": _read(make(tf, tf.data.TFRecordDataset(paths)))
            for what, path in files.items()
            for others, paths in (("alone", [path]), ("before", [path, good]))
            for way, make in _WAYS.items()
        }


def compressed(tf, ask):
    del ask
    text = b"".join(b"line %d\n" % number for number in range(6))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        for kind, pack in (("GZIP", gzip.compress), ("ZLIB", zlib.compress)):
            for what, content in (("nothing at all", b""), ("other bytes", b"hello " * 9)):
                path.write_bytes(content)
                for way, make in _RAISING.items():
                    lines = tf.data.TextLineDataset(str(path), kind)
                    found[f"{kind}, {what}, {way}"] = _failed(_read(make(tf, lines)))
            path.write_bytes(pack(text)[:20])
            found[f"{kind}, cut off"] = _failed(_read(tf.data.TextLineDataset(str(path), kind)))
    return found


def of_one_length(tf, ask):
    del ask
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(b"aabbccd")
        return {
            way: _failed(_read(make(tf, tf.data.FixedLengthRecordDataset(str(path), 2))))
            for way, make in _RAISING.items()
        }


_WAYS = {
    "as it is": lambda _, d: d,
    "skip 1": lambda _, d: d.skip(1),
    "skip 4": lambda _, d: d.skip(4),
    "skip 8": lambda _, d: d.skip(8),
    "shard 0": lambda _, d: d.shard(2, 0),
    "shard 1": lambda _, d: d.shard(2, 1),
    "take 2": lambda _, d: d.take(2),
    "take 9": lambda _, d: d.take(9),
    "batch": lambda _, d: d.batch(4),
    "repeat": lambda _, d: d.repeat(2),
    "zip": lambda tf, d: tf.data.Dataset.zip((d, tf.data.Dataset.range(99))),
    "enumerate": lambda _, d: d.enumerate().skip(1),
    "skip and shard": lambda _, d: d.skip(2).shard(2, 1),
    "prefetch": lambda _, d: d.prefetch(2).skip(1),
    "cache": lambda _, d: d.cache().skip(1),
    "ignored": lambda _, d: d.ignore_errors(),
    "skip, ignored": lambda _, d: d.skip(5).ignore_errors(),
    "shard, ignored": lambda _, d: d.shard(2, 1).ignore_errors(),
}

# TensorFlow meets the error of such a file again and again, and ignores it without end.
_RAISING = {way: make for way, make in _WAYS.items() if "ignored" not in way}


def _written(tf, folder, name, numbers):
    path = os.path.join(folder, name)
    with tf.io.TFRecordWriter(path) as writer:
        for number in numbers:
            writer.write(b"r%02d" % number)
    return path


def _flipped(path, place):
    content = bytearray(Path(path).read_bytes())
    content[place] ^= 0x55
    Path(path).write_bytes(content)
    return path


def _cut(path, size):
    Path(path).write_bytes(Path(path).read_bytes()[:size])
    return path


def _read(dataset):
    """Return elements as text, and the class of an error in its place."""
    found, iterator = [], iter(dataset)
    while len(found) < 40:
        try:
            element = next(iterator)
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001 - every error is an answer
            found.append(type(error).__name__)
        else:
            parts = element if isinstance(element, tuple) else (element,)
            found.append(" ".join(str(np.asarray(part).tolist()) for part in parts))
    return found


def _failed(found):
    """Return whether there was an error: how many rows come before it, buffers decide."""
    return any(each.endswith("Error") for each in found)
