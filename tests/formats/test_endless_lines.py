"""A line that never ends raises an error before it fills the memory."""

import gzip
from contextlib import suppress

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset
READERS = {
    "lines": tf.data.TextLineDataset,
    "csv": lambda path, kind="": tf.data.experimental.CsvDataset(
        path, [tf.string], compression_type=kind
    ),
    "json": lambda path, kind="": Dataset.from_json_lines(path, tf.TensorSpec([], tf.string), kind),
}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Lower the limit of line lengths, so that the tests are fast."""
    monkeypatch.setattr("evenfeed.formats.text_lines.LONGEST", 1 << 20)
    monkeypatch.setattr("evenfeed.formats.csv_files.LONGEST", 1 << 20)


@pytest.mark.parametrize("name", READERS)
def test_a_device_without_an_end_of_line_is_an_error(name):
    with pytest.raises(tf.errors.DataLossError, match=r"/dev/zero: the .* at byte 0 does not end"):
        list(READERS[name]("/dev/zero"))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_lines_before_one_that_does_not_end_come_first_and_the_next_file_follows(
    tmp_path, name, kind
):
    good, bad = (str(tmp_path / which) for which in ("good", "bad"))
    packed = gzip.compress if kind else bytes
    (tmp_path / "good").write_bytes(packed(b'"a"\n"b"\n'))
    (tmp_path / "bad").write_bytes(packed(b'"c"\n' * 10_000 + b'"' + bytes(3 << 20)))
    dataset = READERS[name]([bad, good], kind)
    with pytest.raises(tf.errors.DataLossError, match=r"bad: the .* at byte \d+ does not end"):
        list(dataset)
    assert len(list(dataset.ignore_errors())) == 10_002


def test_a_quote_that_is_never_closed_ends_at_the_limit(tmp_path):
    path = tmp_path / "open.csv"
    path.write_bytes(b'a\n"' + b"b\n" * (1 << 20))
    with pytest.raises(tf.errors.DataLossError, match=r"the record at byte 2 does not end"):
        list(READERS["csv"](str(path)))


def test_a_line_of_almost_the_limit_is_read(tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"a" * (1 << 19) + b"\nb\n")
    assert [len(line.numpy()) for line in tf.data.TextLineDataset(str(path))] == [1 << 19, 1]


@pytest.mark.parametrize(
    "read",
    [
        tf.data.TFRecordDataset,
        Dataset.from_parquet,
        Dataset.from_arrow,
        Dataset.from_webdataset,
        lambda path: tf.data.FixedLengthRecordDataset(path, 4),
        lambda path: tf.data.experimental.make_csv_dataset(path, 2),
    ],
)
def test_no_format_reads_a_device_without_end_for_ever(read):
    with suppress(tf.errors.OpError):
        assert not list(read("/dev/zero"))
