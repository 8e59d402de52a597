"""Everything that reads untrusted input, with valid input to damage."""

import io
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from tests.every_format import FORMATS, ROWS

import evenfeed as tf
from evenfeed.cluster.handshake import decode, encode, parse_greeting
from evenfeed.cluster.meeting import Claim
from evenfeed.cluster.membership import membership_of
from evenfeed.formats.example.example_protos import message_class

# Documented: evenfeed's errors, which are also builtins.
ERRORS = (tf.errors.OpError,)


@dataclass(frozen=True)
class Parser:
    """Something that reads untrusted input.

    Attributes:
        seeds: Valid inputs.
        read: Reads an input; raises an AssertionError if the result is wrong.
        errors: The exceptions that it may raise.
        weight: Its share of the inputs.
    """

    seeds: list[bytes]
    read: Callable[[bytes], object]
    errors: tuple[type[Exception], ...] = ERRORS
    weight: int = 10


def _file(name: str, folder: Path) -> Parser:
    form = FORMATS[name]
    path = folder / f"{name.replace(' ', '-')}.file"
    form.write(str(path), range(ROWS))
    (target,) = [*folder.glob(f"{path.name}-saved/*/*.pages")] or [path]
    whole = target.read_bytes()
    known = {_text(element) for element in form.read([str(path)])}
    if name == "records ":
        # Pieces of a TFRecord file can join into a valid one: a length and its checksum are a record of eight bytes.
        known |= {_text(np.array(length.to_bytes(8, "little"), object)) for length in range(256)}

    def read(content: bytes) -> None:
        target.write_bytes(content)
        rows, errors = _rows(form.read([str(path)]))
        # A file whose checksums hold may be cut off behind a record, or have one twice. The checksum of a compressed
        # file is at its end, so wrong rows may come before the error.
        if form.checks and (not errors or not name.endswith(("GZIP", "ZLIB"))):
            assert set(rows) <= known, rows
        if errors:
            raise errors[0]

    return Parser([whole], read, weight=20 if name != "parquet" else 5)


def _text(element: Any) -> str:
    return str(tf.nest.map_structure(lambda part: np.asarray(part).tolist(), element))


def _rows(dataset: tf.data.Dataset) -> tuple[list[str], list[Exception]]:
    rows, errors, iterator = list[str](), list[Exception](), iter(dataset)
    while len(errors) < 50 * ROWS:
        try:
            rows.append(_text(next(iterator)))
        except StopIteration:
            return rows, errors
        except tf.errors.OpError as error:
            errors.append(error)
    raise AssertionError("it fails without end")


def _example() -> Parser:
    feature = tf.train.Feature
    features = tf.train.Features(
        feature={
            "a": feature(int64_list=tf.train.Int64List(value=[1, -2, 1 << 40])),
            "b": feature(float_list=tf.train.FloatList(value=[0.5, 1.5])),
            "c": feature(bytes_list=tf.train.BytesList(value=[b"text", b""])),
        }
    )
    wanted = {
        "a": tf.io.FixedLenFeature([3], tf.int64),
        "b": tf.io.VarLenFeature(tf.float32),
        "c": tf.io.FixedLenFeature([2], tf.string),
    }
    whole = tf.train.Example(features=features).SerializeToString()

    def read(content: bytes) -> None:
        tf.io.parse_single_example(content, wanted)

    return Parser([whole], read, weight=100)


def _examples() -> Parser:
    """Many records at once: those run in compiled code."""
    seeds = _example().seeds
    wanted = {"a": tf.io.FixedLenFeature([3], tf.int64), "c": tf.io.FixedLenFeature([2], tf.string)}

    def read(content: bytes) -> None:
        tf.io.parse_example(np.array([*seeds * 299, content], object), wanted)

    return Parser(seeds, read, weight=5)


def _tensor() -> Parser:
    seeds = [
        bytes(np.asarray(tf.io.serialize_tensor(value)).item())
        for value in (np.arange(6.0).reshape(2, 3), np.array([b"a", b"bc"], object), np.array(True))
    ]

    for dtype, fields in ((6, {"int_val": [1, -2]}), (8, {"scomplex_val": [1.0, 2.0, 3.0, 4.0]})):
        made = message_class("TensorProto")(dtype=dtype, **fields)
        made.tensor_shape.dim.add(size=2)
        seeds.append(made.SerializeToString())

    def read(content: bytes) -> None:
        for dtype in (tf.float64, tf.string, tf.bool, tf.int8, tf.complex64):
            try:
                tf.io.parse_tensor(content, dtype)
            except tf.errors.InvalidArgumentError:
                continue

    return Parser(seeds, read, weight=60)


def _csv() -> Parser:
    def read(content: bytes) -> None:
        tf.io.decode_csv(content, [1, 2.5, "text"])

    return Parser([b'1,2.5,"a ""b"""', b"-7,1e9,", b",,x"], read, weight=60)


def _json_line(folder: Path) -> Parser:
    signature = {
        "x": tf.TensorSpec([], tf.int64),
        "y": tf.TensorSpec([None], tf.float32),
        "z": {"t": tf.TensorSpec([], tf.string)},
    }
    path = folder / "line.jsonl"

    def read(content: bytes) -> None:
        path.write_bytes(content)
        _, errors = _rows(tf.data.Dataset.from_json_lines(str(path), signature))
        if errors:
            raise errors[0]

    line = b'{"x": 1, "y": [1, 2.5], "z": {"t": "a\\u00e9"}}\n'
    return Parser([line, line * 3], read, weight=20)


def _image(kind: str) -> Parser:
    pixels = np.random.default_rng(1).integers(0, 256, (9, 7, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    ways = {
        "jpeg": tf.io.decode_jpeg,
        "png": tf.io.decode_png,
        "gif": tf.io.decode_gif,
        "webp": tf.io.decode_webp,
        "bmp": tf.io.decode_bmp,
    }

    def read(content: bytes) -> None:
        tf.io.decode_image(content)
        ways[kind](content)

    return Parser([file.getvalue()], read, weight=15)


def _sequence() -> Parser:
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))
    context = tf.train.Features(feature={"a": feature})
    lists = tf.train.FeatureLists(feature_list={"b": tf.train.FeatureList(feature=[feature] * 3)})
    whole = tf.train.SequenceExample(context=context, feature_lists=lists).SerializeToString()

    def read(content: bytes) -> None:
        tf.io.parse_single_sequence_example(
            content,
            {"a": tf.io.FixedLenFeature([2], tf.int64)},
            {"b": tf.io.FixedLenSequenceFeature([2], tf.int64)},
        )

    return Parser([whole], read, weight=60)


def _sound() -> Parser:
    whole = np.asarray(tf.audio.encode_wav(np.zeros((9, 2), np.float32), 8000)).item()
    return Parser([bytes(whole)], tf.audio.decode_wav, weight=60)


def _text_codes() -> Parser:
    def read(content: bytes) -> None:
        for parse in (tf.io.decode_base64, tf.io.decode_json_example):
            with suppress(tf.errors.OpError):
                parse(content)

    example = b'{"features": {"feature": {"a": {"int64List": {"value": ["1", "2"]}}}}}'
    return Parser([b"aGVsbG8gd29ybGQ", example], read, weight=60)


def _state(folder: Path) -> Parser:
    path = folder / "state.txt"
    path.write_text("".join(f"line {number}\n" for number in range(40)))
    dataset = tf.data.TextLineDataset(str(path)).shuffle(5, seed=1).batch(3).repeat(2)
    seeds, rest = list[bytes](), dict[str, list[str]]()
    iterator = iter(dataset)
    for _ in range(5):
        next(iterator)
        state = json.dumps(iterator.get_state())
        seeds.append(state.encode())
        again = iter(dataset)
        again.set_state(json.loads(state))
        rest[state] = [_text(element) for element in again]

    def read(content: bytes) -> None:
        try:
            state = json.loads(content)
        except ValueError:
            raise tf.errors.InvalidArgumentError("not JSON") from None
        again = iter(dataset)
        again.set_state(state)
        # A state without a checksum counts as one of an earlier version.
        found = [_text(element) for element in again]
        assert found in rest.values() or "sum" not in state, content

    return Parser(seeds, read, (*ERRORS, TypeError), weight=20)


def _tf_config() -> Parser:
    seeds = [
        json.dumps(
            {
                "cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"]},
                "task": {"type": "worker", "index": 1},
                "rpc_layer": "grpc",
            }
        ).encode(),
        b'{"cluster": {"worker": {"0": "a:1", "1": "b:2"}}, "task": {"type": "worker", "index": "0"}}',
    ]

    def read(content: bytes) -> None:
        os.environ["TF_CONFIG"] = content.decode("utf-8", "replace").replace("\0", "?")
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        membership_of(resolver)
        resolver.master()

    return Parser(seeds, read, (*ERRORS, ValueError, TypeError), weight=100)


def _message() -> Parser:
    facts = {"cluster": ["a:1", "b:2"], "version of evenfeed": "1", "devices": 2}
    claim = Claim(1, facts, "n" * 64).proven(b"key", "challenge")

    def read(content: bytes) -> None:
        with suppress(ValueError):
            parse_greeting(content)
        found = Claim.parse(decode(content))
        assert found == claim or not found.is_proven(b"key", "challenge"), content

    return Parser([encode(claim.message())], read, (*ERRORS, ValueError), weight=100)


def parsers(folder: Path) -> dict[str, Callable[[], Parser]]:
    """Return a function that makes each parser."""
    files = {f"file: {name.strip()}": (lambda name=name: _file(name, folder)) for name in FORMATS}
    images = {
        f"image: {kind}": (lambda kind=kind: _image(kind))
        for kind in ("jpeg", "png", "gif", "bmp", "webp")
    }
    return {
        **files,
        **images,
        "example": _example,
        "examples": _examples,
        "sequence example": _sequence,
        "tensor": _tensor,
        "sound": _sound,
        "base64 and JSON": _text_codes,
        "csv line": _csv,
        "json line": lambda: _json_line(folder),
        "state": lambda: _state(folder),
        "TF_CONFIG": _tf_config,
        "message": _message,
    }
