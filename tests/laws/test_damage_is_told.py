"""A damaged file never just shortens the data: a reader who gets other rows than the intact file has gets an error."""

# pyright: basic

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.every_format import FORMATS, written
from tests.feeding.distribution import with_policy

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.dataset import Dataset, plan_of
from evenfeed.rewrite.worker_plan import sharded

WAYS = {
    "as it is": lambda d: d,
    "skip 1": lambda d: d.skip(1),
    "skip 5": lambda d: d.skip(5),
    "skip 12": lambda d: d.skip(12),
    "shard 0": lambda d: d.shard(2, 0),
    "shard 1": lambda d: d.shard(2, 1),
    "take": lambda d: d.take(99),
    "batch": lambda d: d.batch(3),
    "drop": lambda d: d.batch(4, drop_remainder=True),
    "batch and skip": lambda d: d.batch(3).skip(1),
    "batch and shuffle": lambda d: d.batch(2).shuffle(4, seed=3),
    "shuffle": lambda d: d.shuffle(4, seed=3),
    "shuffle and skip": lambda d: d.shuffle(100, seed=3).skip(2),
    "repeat": lambda d: d.repeat(2).skip(9),
    "zip": lambda d: Dataset.zip((d.skip(1), Dataset.range(99))),
    "zip of shards": lambda d: Dataset.zip((d.shard(2, 0), d.shard(2, 1))),
    "prefetch": lambda d: d.prefetch(2).skip(3),
    "cache": lambda d: d.cache().skip(3),
    "map": lambda d: d.enumerate().map(lambda i, _: i).skip(3).shard(2, 1),
    "concatenate": lambda d: d.skip(2).concatenate(d.shard(2, 1)),
    "one worker by rows": lambda d: on_worker(d.batch(4), 0, "DATA"),
    "the other by rows": lambda d: on_worker(d.shuffle(3, seed=1).batch(4), 1, "DATA"),
    "one worker by files": lambda d: on_worker(d.batch(4), 0, "AUTO"),
}


def on_worker(dataset: Dataset, worker: int, policy: str) -> Dataset:
    """Return the dataset that one of two workers reads."""
    chosen = with_policy(dataset, policy)
    return Dataset(sharded(plan_of(chosen), Share(worker, 2, 1)).plan)


def told(read: Any) -> tuple[list[Any], list[Exception]]:
    """Return all elements as plain values, and all errors."""
    found: list[Any] = []
    errors: list[Exception] = []
    try:
        iterator = iter(read())
    except tf.errors.OpError as error:
        return found, [error]
    while len(errors) < 40:
        try:
            element = next(iterator)
        except StopIteration:
            break
        except tf.errors.OpError as error:
            errors.append(error)
        else:
            found.append([np.asarray(part).tolist() for part in tf.nest.flatten(element)])
    return found, errors


def damages(content: bytes, *, checks: bool) -> list[bytes]:
    """Return the content of a file after each kind of damage."""
    size = len(content)
    found = [content[:at] for at in sorted({1, 12, size // 3, size // 2, size - 9, size - 1})]
    for at in range(0, size, max(1, size // 9)) if checks else ():
        changed = bytearray(content)
        changed[at] ^= 16
        found.append(bytes(changed))
    return found


# A file of fixed-length records that ends after a whole record is intact.
NAMES = [name for name in FORMATS if name != "fixed "]


@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_done_with_a_damaged_file_its_error_comes_or_all_rows_do(name, tmp_path):
    paths = written(name, tmp_path)
    read, whole = FORMATS[name].read, Path(paths[0]).read_bytes()
    expected = {way: told(lambda make=make: make(read(paths))) for way, make in WAYS.items()}
    assert not [way for way, (_, errors) in expected.items() if errors]
    noticed = 0
    for content in damages(whole, checks=FORMATS[name].checks):
        Path(paths[0]).write_bytes(content)
        if not told(lambda: read(paths))[1]:
            continue  # undetectable: a changed line is still a line
        noticed += 1
        for way, make in WAYS.items():
            rows, errors = told(lambda make=make: make(read(paths)))
            assert errors or same(rows, expected[way][0]), (way, content)
    assert noticed or name in ("lines ", "csv ", "json ")


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.split()[0] in ("records", "lines")]
)
def test_a_damaged_file_among_those_that_are_read_in_turn_is_told(name, tmp_path):
    paths = written(name, tmp_path, files=3)
    read = FORMATS[name].read
    in_turn = Dataset.from_tensor_slices(paths).interleave(
        lambda path: read([path]), cycle_length=3
    )
    assert len(told(lambda: in_turn)[0]) == 24
    content = Path(paths[1]).read_bytes()
    for changed in damages(content, checks=True):
        Path(paths[1]).write_bytes(changed)
        if not told(lambda: read(paths))[1]:
            continue
        for make in (lambda d: d, lambda d: d.skip(20), lambda d: d.shard(2, 1)):
            assert told(lambda make=make: make(in_turn))[1]


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_gone_is_told(way, tmp_path):
    for name in ("records ", "lines ", "fixed ", "webdataset", "array_record"):
        folder = tmp_path / name.strip()
        folder.mkdir()
        paths = written(name, folder)
        Path(paths[0]).unlink()
        _, errors = told(lambda name=name, paths=paths: WAYS[way](FORMATS[name].read(paths)))
        assert {type(error) for error in errors} == {tf.errors.NotFoundError}, name


def same(rows: list[Any], others: list[Any]) -> bool:
    """Return True if the rows are equal; a shuffle may change their order."""
    return sorted(map(repr, rows)) == sorted(map(repr, others))
