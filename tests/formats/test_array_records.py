import numpy as np
import pytest
from array_record.python.array_record_module import ArrayRecordWriter

import evenfeed as tf
from evenfeed.core.errors import DataLossError, NotFoundError
from evenfeed.formats.array_records import ArrayRecordFile


def write(path, records, options="group_size:1"):
    writer = ArrayRecordWriter(str(path), options)
    for record in records:
        writer.write(record)
    writer.close()
    return path


@pytest.fixture
def files(tmp_path):
    return [
        write(tmp_path / f"{n}.array_record", [b"%d %d" % (n, row) for row in range(size)])
        for n, size in enumerate((5, 0, 7))
    ]


RECORDS = [b"0 %d" % row for row in range(5)] + [b"2 %d" % row for row in range(7)]


def test_records_come_in_their_order(files):
    dataset = tf.data.Dataset.from_array_record(files)
    assert len(dataset) == 12
    assert list(dataset.as_numpy_iterator()) == RECORDS


def test_records_have_positions(files):
    dataset = tf.data.Dataset.from_array_record(files)
    assert list(dataset.shard(5, 2).as_numpy_iterator()) == RECORDS[2::5]
    assert sorted(dataset.shuffle(12, seed=1).as_numpy_iterator()) == sorted(RECORDS)
    assert "by position" in str(dataset.explain())


def test_an_iterator_goes_on_where_it_stopped(files):
    iterator = iter(tf.data.Dataset.from_array_record(files))
    for _ in range(6):
        next(iterator)
    other = iter(tf.data.Dataset.from_array_record(files))
    other.set_state(iterator.get_state())
    assert [record.item() for record in other] == RECORDS[6:]


def test_records_in_groups(tmp_path):
    path = write(tmp_path / "grouped", RECORDS, "group_size:4")
    found = tf.data.Dataset.from_array_record(path).shuffle(12, seed=3).as_numpy_iterator()
    assert sorted(found) == sorted(RECORDS)


def test_a_file_that_is_missing_comes_in_its_turn(files, tmp_path):
    dataset = tf.data.Dataset.from_array_record([files[0], tmp_path / "none", files[2]])
    assert int(dataset.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    iterator = iter(dataset)
    assert [next(iterator).item() for _ in range(5)] == RECORDS[:5]
    with pytest.raises(NotFoundError, match="none"):
        next(iterator)
    assert [record.item() for record in iterator] == RECORDS[5:]


@pytest.mark.parametrize("length", [0, 10, 1000, 65536])
def test_a_file_that_is_cut_off_is_an_error(files, tmp_path, length):
    cut = tmp_path / "cut"
    cut.write_bytes(files[0].read_bytes()[:length])
    with pytest.raises(DataLossError, match="cut") as raised:
        ArrayRecordFile(str(cut)).open()
    assert raised.value.file == str(cut)


def test_a_flipped_bit_is_an_error(files, tmp_path):
    content = bytearray(files[0].read_bytes())
    content[content.find(b"0 3")] ^= 1
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    iterator = tf.data.Dataset.from_array_record(bad).ignore_errors().as_numpy_iterator()
    assert np.isin(list(iterator), RECORDS[:5]).all()
    with pytest.raises(DataLossError, match="hash mismatch"):
        list(tf.data.Dataset.from_array_record(bad))
