import gzip
import zlib
from pathlib import Path

import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError, NotFoundError

THEIRS = Path(__file__).parents[1] / "formats" / "data"
Writer = tf.data.experimental.TFRecordWriter


@pytest.mark.parametrize(
    ("name", "how", "unpacked"),
    [("plain", None, bytes), ("gzip", "GZIP", gzip.decompress), ("zlib", "ZLIB", zlib.decompress)],
)
def test_files_are_the_same_as_tensorflows(tmp_path, name, how, unpacked):
    theirs = THEIRS / f"{name}.tfrecord"
    Writer(str(tmp_path / "ours"), how).write(tf.data.TFRecordDataset(theirs, how))
    assert unpacked((tmp_path / "ours").read_bytes()) == unpacked(theirs.read_bytes())


def test_a_dataset_without_elements_is_an_empty_file(tmp_path):
    Writer(tmp_path / "none").write(tf.data.Dataset.from_tensor_slices([b"a"]).take(0))
    assert (tmp_path / "none").read_bytes() == b""


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ([b"a"], "expected a Dataset, but got list"),
        (tf.data.Dataset.range(3), "must be scalar strings"),
        (tf.data.Dataset.from_tensor_slices([[b"a"]]), "must be scalar strings"),
        (tf.data.Dataset.from_tensor_slices(([b"a"], [b"b"])), "must be scalar strings"),
    ],
)
def test_elements_that_are_not_records_are_refused_before_the_file_is_created(
    tmp_path, dataset, said
):
    with pytest.raises(TypeError, match=said):
        Writer(tmp_path / "file").write(dataset)
    assert not (tmp_path / "file").exists()


def test_wrong_places_and_compressions(tmp_path):
    with pytest.raises(InvalidArgumentError, match="compression_type"):
        Writer(tmp_path / "file", "LZ4")
    with pytest.raises(NotFoundError, match="nowhere"):
        Writer(tmp_path / "nowhere" / "file").write(tf.data.Dataset.from_tensor_slices([b"a"]))
