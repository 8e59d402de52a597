import os

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.formats.bytes.mapped_files import MappedFile

MANY = 50_000  # rows of 8 bytes: many pages of memory


def test_a_file_that_was_cut_short_is_an_error_not_the_end_of_the_process(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(100_000))
    file = MappedFile(str(path))
    file.check()
    os.truncate(path, 10)
    with pytest.raises(tf.errors.DataLossError, match=r"was truncated from 100000 to 10 bytes"):
        file.check()


def test_a_file_that_grew_or_is_gone_is_read_as_it_was(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    file = MappedFile(str(path))
    with path.open("ab") as more:
        more.write(b"def")
    path.unlink()
    file.check()
    assert file.bytes[:] == b"abc"
    file.close()


def test_an_empty_file_has_no_bytes(tmp_path):
    path = tmp_path / "file"
    path.touch()
    file = MappedFile(str(path))
    file.check()
    assert file.bytes == b""
    file.close()


def saved(folder):
    tf.data.Dataset.range(MANY).save(folder)
    (path,) = folder.glob("*/*.pages")
    return tf.data.Dataset.load(folder), path


def fixed(folder):
    path = folder / "records"
    path.write_bytes(np.arange(MANY).tobytes())
    return tf.data.FixedLengthRecordDataset(str(path), 8), path


def records(folder):
    path = folder / "records"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(MANY // 10):
            writer.write(bytes(80))
    return tf.data.TFRecordDataset(str(path)), path


@pytest.mark.parametrize("written", [saved, fixed, records])
@pytest.mark.parametrize("mixed", [False, True])
def test_readers_look_whether_the_file_is_still_as_long(tmp_path, written, mixed):
    dataset, path = written(tmp_path)
    iterator = iter(dataset.shuffle(MANY, seed=1) if mixed else dataset)
    next(iterator)
    os.truncate(path, 4096)
    with pytest.raises(tf.errors.DataLossError, match=r"was truncated from .* to 4096 bytes"):
        for _ in iterator:
            pass
