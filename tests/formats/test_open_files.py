"""However many files a dataset has, only a few are open at a time."""

import errno
import gc
import io
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from tests.every_format import FORMATS, ROWS, written

import evenfeed as tf
from evenfeed.formats.bytes import open_files
from evenfeed.formats.bytes.open_files import Reopened, with_room

Dataset = tf.data.Dataset
FEW = 3
PROGRAM = Path(__file__).with_name("programs") / "many_files.py"


@pytest.fixture
def few(monkeypatch):
    """Limit evenfeed to `FEW` open files."""
    monkeypatch.setattr(open_files, "_FEWEST", FEW)
    monkeypatch.setattr(open_files, "_MOST", FEW)


def open_in(folder):
    """Return how many files in a directory this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # the descriptor of the listing itself
            continue
    return sum(path.startswith(str(folder)) for path in found)


def each(read, paths):
    return [read([path]) for path in paths]


def interleaved(read, paths):
    datasets = each(read, paths)
    numbers = Dataset.range(len(paths))
    return numbers.interleave(
        lambda n: Dataset.choose_from_datasets(datasets, Dataset.from_tensors(n).repeat(ROWS)),
        cycle_length=len(paths),
    )


WAYS = {
    "shuffled": lambda read, paths: read(paths).shuffle(1000, seed=1),
    "in turn": interleaved,
    "chosen": lambda read, paths: Dataset.choose_from_datasets(
        each(read, paths), Dataset.range(len(paths)).repeat(ROWS)
    ),
    "cached": lambda read, paths: read(paths).cache().shuffle(1000, seed=1),
}


def rows_of(elements):
    return sorted(str(tf.nest.map_structure(np.asarray, element)) for element in elements)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FORMATS)
def test_few_files_are_open_at_a_time_however_they_are_read(tmp_path, name, way):
    held = (
        16 if "arrow" in name else 0
    )  # the number of Arrow files that stay mapped between their record batches
    paths = written(name, tmp_path, 2 * held or 12)
    most, elements = 0, []
    for element in WAYS[way](FORMATS[name].read, paths):
        elements.append(element)  # some are views of files
        most = max(most, open_in(tmp_path))
    assert most <= held + 2 * FEW + 1
    assert rows_of(elements) == rows_of(FORMATS[name].read(paths))


@pytest.mark.usefixtures("few")
def test_few_files_are_open_while_many_shards_are_saved(tmp_path):
    most = 0

    def shard(number):
        nonlocal most
        most = max(most, open_in(tmp_path))
        return number % 40

    rows = Dataset.range(80).map(lambda x: tf.zeros([20_000], tf.int64) + x)  # a page each
    rows.save(str(tmp_path), shard_func=lambda row: tf.py_function(shard, [row[0]], tf.int64))
    assert 0 < most <= FEW + 1
    found = [int(row[0]) for row in Dataset.load(str(tmp_path))]
    assert sorted(found) == list(range(80))


@pytest.mark.usefixtures("few")
def test_few_files_are_open_while_many_caches_are_written_and_read(tmp_path):
    names = [str(tmp_path / f"cache {number}") for number in range(20)]
    datasets = [Dataset.range(n, n + 4).cache(name) for n, name in enumerate(names)]
    turns = Dataset.choose_from_datasets(datasets, Dataset.range(20).repeat(5))
    for _ in range(2):
        found, most = [], 0
        for element in turns:
            found.append(element)
            most = max(most, open_in(tmp_path))
        assert most <= 2 * FEW + 1
        assert sorted(map(int, found)) == sorted(n + k for n in range(20) for k in range(4))


@pytest.mark.usefixtures("few")
def test_many_iterators_at_once_share_the_few_files(tmp_path):
    paths = written("lines ", tmp_path, 12)
    iterators = [iter(tf.data.TextLineDataset(path, buffer_size=8)) for path in paths]
    found = [next(iterator).item() for _ in range(ROWS) for iterator in iterators]
    assert found == [b"line %d" % (n * ROWS + k) for k in range(ROWS) for n in range(12)]
    assert open_in(tmp_path) <= FEW


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_a_file_is_read_on_where_it_was_closed(tmp_path, kind):
    paths = []
    for number in range(8):
        paths.append(str(tmp_path / str(number)))
        with tf.io.TFRecordWriter(paths[-1], kind) as writer:
            for row in range(300):
                writer.write(np.random.default_rng(number * 300 + row).bytes(2000))
    names = Dataset.from_tensor_slices(paths)
    turns = names.interleave(lambda name: tf.data.TFRecordDataset(name, kind), cycle_length=8)
    found = [record.item() for record in turns]
    expected = [[record.item() for record in tf.data.TFRecordDataset(path, kind)] for path in paths]
    assert found == [expected[n][row] for row in range(300) for n in range(8)]


def read_all(file):
    return file.opened().read()


@pytest.mark.usefixtures("few")
def test_a_file_that_is_another_one_when_it_is_opened_again_is_an_error_that_names_it(tmp_path):
    paths = [str(tmp_path / f"{number}.txt") for number in range(8)]
    for path in paths:
        Path(path).write_bytes(b"a line\n" * 50_000)
    names = Dataset.from_tensor_slices(paths)
    turns = iter(names.interleave(tf.data.TextLineDataset, cycle_length=8))
    for _ in range(16):
        next(turns)
    other = tmp_path / "other"
    other.write_bytes(b"another line\n" * 50_000)
    other.rename(paths[0])
    with pytest.raises(
        tf.errors.DataLossError, match=r"0\.txt was replaced while it was being read"
    ):
        list(turns)


@pytest.mark.usefixtures("few")
def test_a_pipe_is_not_closed_to_be_opened_again(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_bytes(b"a\n" * 200_000))
    writer.start()
    through = iter(tf.data.TextLineDataset(str(pipe)))
    count = sum(1 for _ in zip(range(10), through, strict=False))
    assert [len(list(Dataset.load(str(path)))) for path in saved_in(tmp_path, 6)] == [5] * 6
    count += sum(1 for _ in through)
    writer.join()
    assert count == 200_000


def saved_in(folder, count):
    for number in range(count):
        Dataset.range(5).save(str(folder / f"saved {number}"))
    return [folder / f"saved {number}" for number in range(count)]


@pytest.mark.usefixtures("few")
def test_a_file_in_use_is_not_closed():
    files = [Reopened(lambda: io.BytesIO(b"bytes")) for _ in range(6)]
    held = files[0].opened()
    assert [read_all(file) for file in files[1:]] == [b"bytes"] * 5
    assert held.read() == b"bytes"
    assert read_all(files[0]) == b"bytes"  # reopened at its start
    assert read_all(files[5]) == b""  # still open, at its end


def test_files_that_are_not_in_use_are_closed_where_the_process_may_open_no_more():
    file = Reopened(lambda: io.BytesIO(b"bytes"))
    assert read_all(file) == b"bytes"
    tries = []

    def opened():
        tries.append(read_all(file) if len(tries) else None)
        if len(tries) == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return "opened"

    assert with_room(opened) == "opened"
    assert tries == [None, b"bytes"]  # closed, and reopened at its start


@pytest.mark.usefixtures("few")
def test_a_file_that_is_forgotten_counts_no_longer(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"line\n" * 100_000)
    for _ in range(3 * FEW):
        next(iter(tf.data.TextLineDataset(str(path))))
    gc.collect()
    assert open_in(tmp_path) == 0


def test_a_thousand_files_are_shuffled_under_a_low_limit(tmp_path):
    paths = []
    for number in range(300):
        paths.append(str(tmp_path / f"{number}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for row in range(3):
                writer.write(b"%d" % (3 * number + row))
    said = subprocess.run(
        [sys.executable, str(PROGRAM), *paths], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["900", "900", "900"]
    assert not said.stderr


def test_where_no_file_can_be_opened_at_all_the_error_says_so(tmp_path):
    paths = written("lines ", tmp_path, 1)
    said = subprocess.run(
        [sys.executable, str(PROGRAM), "--none-left", *paths],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ResourceExhaustedError" in said.stderr
    assert f"{paths[0]} cannot be opened: the process has too many files open." in said.stderr
    assert "ulimit -n" in said.stderr
