"""Datasets of small files that a function names are read at once, and give what they give one by one."""

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.text.text_columns import Origins
from evenfeed.formats.bytes import small_files
from evenfeed.runtime.operators.inner import expanding

Data = tf.data.Dataset
ROWS = [3, 1, 4, 1, 5, 2, 6, 5, 3, 5]
PACK = {"": bytes, "GZIP": gzip.compress}
WAYS = {
    "flat_map": lambda files, make: files.flat_map(make),
    "interleave": lambda files, make: files.interleave(make, cycle_length=3),
    "blocks": lambda files, make: files.interleave(make, cycle_length=2, block_length=2),
    "many": lambda files, make: files.interleave(make, cycle_length=16),
}
KINDS = {"records": tf.data.TFRecordDataset, "lines": tf.data.TextLineDataset}


def _changed(dataset):
    return (
        dataset.skip(1)
        .filter(lambda x: x != b"row 2 of 4")
        .map(lambda x: (x, tf.strings.length(x)))
    )


MAKERS = {
    "alone": lambda kind: kind,
    "in a list": lambda kind: lambda path: kind([path]),
    "changed": lambda kind: lambda path: _changed(kind(path)),
}


@pytest.fixture
def written(tmp_path):
    """Write files of some rows each, and return their paths."""

    def write(name, pack=""):
        paths = []
        for number, rows in enumerate(ROWS):
            path = tmp_path / f"{number}.{name}"
            texts = [b"row %d of %d" % (row, number) for row in range(rows)]
            if name == "records":
                with tf.io.TFRecordWriter(str(path)) as writer:
                    for text in texts:
                        writer.write(text)
            else:
                path.write_bytes(b"\n".join(texts))
            path.write_bytes(PACK[pack](path.read_bytes()))
            paths.append(str(path))
        return paths

    return write


@pytest.fixture
def together(monkeypatch):
    """How many files were read at a time."""
    found = []
    read = expanding._rows_of_files

    def counted(files):
        rows = read(files)
        found.append(len(files))
        return rows

    monkeypatch.setattr(expanding, "_rows_of_files", counted)
    return found


def _elements(dataset):
    """Return all elements, and the text, file and byte of each error."""
    found, iterator = [], iter(dataset)
    for _ in range(200):
        try:
            found.append(str(next(iterator)))
        except StopIteration:
            return found
        except tf.errors.OpError as error:
            found.append((str(error).splitlines()[0], error.file, error.offset))
    raise AssertionError("the elements do not end")


def _singly(dataset, monkeypatch):
    """Return what a dataset returns if each file is opened for itself."""
    with monkeypatch.context() as patched:
        patched.setattr(small_files, "_LARGEST", -1)
        return _elements(dataset)


@pytest.mark.parametrize("case", list(itertools.product(KINDS, WAYS, MAKERS)), ids=", ".join)
def test_small_files_are_read_at_once(written, together, monkeypatch, case):
    name, way, maker = case
    dataset = WAYS[way](Data.from_tensor_slices(written(name)), MAKERS[maker](KINDS[name]))
    assert _elements(dataset) == _singly(dataset, monkeypatch)
    assert max(together) > 1
    assert _elements(dataset.batch(4)) == _singly(dataset.batch(4), monkeypatch)


@pytest.mark.parametrize("name", KINDS)
def test_a_dataset_of_paths_is_read_at_once(written, together, monkeypatch, name):
    dataset = KINDS[name](Data.from_tensor_slices(written(name, "GZIP")), "GZIP")
    assert _elements(dataset) == _singly(dataset, monkeypatch)
    assert max(together) > 1


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_position_in_files_that_were_read_at_once_is_found_again(written, name, way):
    dataset = WAYS[way](Data.from_tensor_slices(written(name)), KINDS[name])
    whole = [text.numpy() for text in dataset]
    iterator = iter(dataset)
    for passed in range(len(whole)):
        state = json.loads(json.dumps(iterator.get_state()))
        resumed = iter(dataset)
        resumed.set_state(state)
        assert [text.numpy() for text in resumed] == whole[passed:]
        next(iterator)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_changed_since_the_state_was_taken_is_named(written, way):
    paths = written("lines")
    dataset = WAYS[way](Data.from_tensor_slices(paths), tf.data.TextLineDataset)
    iterator = iter(dataset)
    left, noticed = list(ROWS), 0
    for _ in range(sum(ROWS)):
        number = int(next(iterator).numpy().split()[-1])
        left[number] -= 1
        if not 0 < left[number] < ROWS[number]:
            continue
        state, content = iterator.get_state(), Path(paths[number]).read_bytes()
        Path(paths[number]).write_bytes(b"more\n" + content)
        with pytest.raises(tf.errors.DataLossError, match="changed since the state") as caught:
            iter(dataset).set_state(state)
        assert caught.value.file == paths[number]
        Path(paths[number]).write_bytes(content)
        noticed += 1
    assert noticed == sum(rows - 1 for rows in ROWS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("damage", ["missing", "empty", "checksum", "cut"])
@pytest.mark.parametrize("place", [0, 5, 9])
def test_a_file_that_cannot_be_read_has_its_error_in_its_place(
    written, monkeypatch, way, damage, place
):
    paths = written("records")
    bad = Path(paths[place])
    data = bad.read_bytes()
    match damage:
        case "missing":
            bad.unlink()
        case "empty":
            bad.write_bytes(b"")
        case "checksum":
            bad.write_bytes(data[:13] + b"?" + data[14:])
        case "cut":
            bad.write_bytes(data[:-3])
    dataset = WAYS[way](Data.from_tensor_slices(paths), tf.data.TFRecordDataset)
    assert _elements(dataset) == _singly(dataset, monkeypatch)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_an_error_names_the_row_of_a_file_that_was_read_at_once(written, together, name, way):
    dataset = WAYS[way](Data.from_tensor_slices(written(name)), KINDS[name])
    failing = dataset.map(tf.strings.to_number)
    texts = [text.numpy() for text in dataset]
    found = _elements(failing)
    assert max(together) > 1
    assert len(found) == len(texts)
    for text, error in zip(texts, found, strict=True):
        row, number = (int(part) for part in text.split()[1::2])
        assert error[1].endswith(f"{number}.{name}")
        assert error[2] == row * (len(text) + (16 if name == "records" else 1))


def test_a_function_that_looks_at_the_path_is_called_for_each(written, together):
    paths = written("lines")
    seen = []

    def lines(path):
        seen.append(path.numpy())
        return tf.data.TextLineDataset(path)

    dataset = Data.from_tensor_slices(paths).flat_map(lines)
    assert len(list(dataset)) == sum(ROWS)
    assert together == []
    assert {path.encode() for path in paths} <= set(seen)


def test_a_function_that_names_two_files_opens_them_one_by_one(written, together):
    paths = written("lines")
    pairs = Data.zip((Data.from_tensor_slices(paths), Data.from_tensor_slices(paths[::-1])))
    both = pairs.flat_map(
        lambda a, b: tf.data.TextLineDataset(a).concatenate(tf.data.TextLineDataset(b))
    )
    assert len(list(both)) == 2 * sum(ROWS)
    assert together == []


def test_files_that_are_not_read_any_more_are_forgotten():
    origins = Origins(("a", "b", "c"), *np.array([[0, 3, 6], [0, 1, 2], [5, 6, 7]]))
    part = origins.between(4, 8)
    assert part.paths == ("b", "c")
    assert [part.of(byte) for byte in range(4)] == [origins.of(byte) for byte in range(4, 8)]
