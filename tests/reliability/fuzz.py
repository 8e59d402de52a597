"""Feeds damaged input to every parser: files, records, lines, images, states, TF_CONFIG, messages between workers.

Each input gives a result or one of the documented errors: no crash, no hang, no other exception. Where the format has
checksums, a result is the one of the undamaged input.

Usage: python -m tests.reliability.fuzz INPUTS [SEED] [PARSER ...]

Each parser runs in a process of its own. If that is killed or hangs, the seed of the last hundred inputs is printed;
`python -m tests.reliability.fuzz --one PARSER SEED` runs those again.
"""

import faulthandler
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from tests.every_format import FORMATS, ROWS
from tests.formats.programs.damage_files import damaged

import evenfeed as tf
from evenfeed.cluster.handshake import decode, encode, parse_greeting
from evenfeed.cluster.meeting import Claim
from evenfeed.cluster.membership import membership_of
from evenfeed.formats.example.example_protos import message_class

GROUP = 100  # inputs per seed
SECONDS = 60.0  # for one group
OK, REFUSED = "read", "refused"
# Documented: evenfeed's errors, which are also builtins; TensorFlow raises ValueError and TypeError for arguments.
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


def mutated(parser: Parser, chance: random.Random) -> bytes:
    """Return a damaged input: bytes changed, cut, inserted, repeated, spliced with another input, or all random."""
    content = chance.choice(parser.seeds)
    if chance.random() < 0.05:
        return chance.randbytes(chance.randrange(200))
    if chance.random() < 0.1:
        other = chance.choice(parser.seeds)
        content = (
            content[: chance.randrange(len(content) + 1)] + other[chance.randrange(len(other)) :]
        )
    if chance.random() < 0.1:
        start = chance.randrange(len(content) + 1)
        content = (
            content[:start]
            + content[max(0, start - 16) : start] * chance.randrange(1, 9)
            + content[start:]
        )
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        content = damaged(content or b"\0", chance)
    return content


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
        assert [_text(element) for element in again] in rest.values(), content

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
    claim = Claim(1, facts, "n" * 64).proven(b"key", "challenge").message()

    def read(content: bytes) -> None:
        with suppress(ValueError):
            parse_greeting(content)
        proven = Claim.parse(decode(content)).is_proven(b"key", "challenge")
        assert not proven or decode(content) == claim, content

    return Parser([encode(claim)], read, (*ERRORS, ValueError), weight=100)


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


def run_group(parser: Parser, name: str, seed: int) -> Counter[str]:
    """Read a hundred inputs; count what came of them."""
    chance, found = random.Random(f"{name} {seed}"), Counter[str]()
    for number in range(GROUP):
        content = mutated(parser, chance)
        try:
            parser.read(content)
            found[OK] += 1
        except parser.errors:
            found[REFUSED] += 1
        except Exception as error:
            error.add_note(f"parser {name!r}, seed {seed}, input {number}: {content!r}")
            raise
    return found


def _serve(name: str, first: int, groups: int) -> None:
    """Read groups of inputs, and print the counts after each."""
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        parser = parsers(Path(folder))[name]()
        for seed in range(first, first + groups):
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            found = run_group(parser, name, seed)
            sys.stdout.write(f"{seed} {found[OK]} {found[REFUSED]}\n")
            sys.stdout.flush()


def fuzz(name: str, first: int, groups: int) -> Counter[str]:
    """Run a parser in a process of its own, and count what came of its inputs."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.fuzz", "--one", name, str(first), str(groups)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    if done.returncode:
        last = lines[-1][0] + 1 if lines else first
        raise AssertionError(f"{name} failed in the group with seed {last}:\n{done.stderr[-4000:]}")
    return Counter({OK: sum(line[1] for line in lines), REFUSED: sum(line[2] for line in lines)})


def main(inputs: int, first: int, names: list[str]) -> None:
    """Share the inputs among the parsers, and print a line for each."""
    with tempfile.TemporaryDirectory() as folder:
        made = {name: make() for name, make in parsers(Path(folder)).items()}
    names = names or list(made)
    weights = sum(made[name].weight for name in names)
    total, begin = Counter[str](), time.monotonic()
    failed: list[str] = []
    for name in names:
        groups = max(1, round(inputs * made[name].weight / weights / GROUP))
        try:
            found = fuzz(name, first, groups)
        except AssertionError as error:
            failed.append(name)
            sys.stdout.write(f"{error}\n")
            continue
        total += found
        sys.stdout.write(f"{name}: {found.total():,} inputs, {found[REFUSED]:,} refused\n")
        sys.stdout.flush()
    seconds = time.monotonic() - begin
    sys.stdout.write(
        f"{total.total():,} inputs over {len(names)} parsers, {total[REFUSED]:,} refused, seeds from {first}, "
        f"{seconds:.0f} s; failed: {failed or 'none'}\n"
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        _serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    else:
        main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, sys.argv[3:])
