import gzip
import inspect
import sqlite3
import zlib
from pathlib import Path

import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError, NotFoundError
from evenfeed.dataset import composed

Dataset, older = tf.data.Dataset, tf.data.experimental


def numbers(dataset):
    return [x.tolist() for x in dataset]


@pytest.mark.parametrize(
    ("name", "arguments", "method"),
    [
        ("unbatch", (), "unbatch"),
        ("unique", (), "unique"),
        ("take_while", (lambda x: x[0] < 4,), "take_while"),
        ("enumerate_dataset", (5,), "enumerate"),
        ("scan", (0, lambda s, x: (s + 1, x)), "scan"),
        ("ignore_errors", (), "ignore_errors"),
    ],
)
def test_an_older_name_does_what_the_method_does(name, arguments, method):
    dataset = Dataset.range(6)
    if name != "unique":
        dataset = dataset.batch(2)
    old = dataset.apply(getattr(older, name)(*arguments))
    new = getattr(dataset, method)(*arguments)
    assert old.element_spec == new.element_spec
    assert str(list(old)) == str(list(new))


def test_groups_and_buckets():
    windows = older.group_by_window(lambda x: x % 2, lambda _, rows: rows.batch(3), window_size=3)
    assert numbers(Dataset.range(6).apply(windows)) == [[0, 2, 4], [1, 3, 5]]
    rows = Dataset.from_generator(
        lambda: iter([[1], [1, 2, 3], [2]]), output_signature=tf.TensorSpec([None], tf.int32)
    )
    buckets = older.bucket_by_sequence_length(lambda row: tf.shape(row)[0], [2], [2, 2])
    assert numbers(rows.apply(buckets)) == [[[1], [2]], [[1, 2, 3]]]


def test_rejection_resample_returns_the_class_with_each_element():
    resampled = Dataset.range(40).apply(
        older.rejection_resample(lambda x: x % 2, [0.5, 0.5], [0.5, 0.5], seed=1)
    )
    assert all(kind == x % 2 for kind, x in resampled)


def test_the_signature_is_the_methods_without_the_dataset():
    assert list(inspect.signature(older.take_while).parameters)[:1] == ["predicate"]
    assert older.unbatch.__module__ == "evenfeed.data.experimental"
    assert "Dataset.unbatch" in older.unbatch.__doc__


def test_map_and_batch_takes_tensorflows_numbers_of_calls():
    mapped = older.map_and_batch(lambda x: x + 1, 2, num_parallel_batches=2, drop_remainder=True)
    assert numbers(Dataset.range(5).apply(mapped)) == [[1, 2], [3, 4]]


def test_choices_of_exhausted_datasets_are_skipped_by_default():
    data, choice = [Dataset.range(1), Dataset.range(10, 12)], Dataset.range(2).repeat(2)
    assert numbers(older.choose_from_datasets(data, choice)) == [0, 10, 11]
    assert numbers(older.choose_from_datasets(data, choice, stop_on_empty_dataset=True)) == [0, 10]


def test_parallel_calls_and_batches_cannot_both_be_passed():
    assert numbers(Dataset.range(3).apply(older.map_and_batch(abs, 2, 4))) == [[0, 1], [2]]
    with pytest.raises(ValueError, match=r"(?s)cannot both be passed.*test_experimental_names\.py"):
        older.map_and_batch(abs, 2, num_parallel_batches=4, num_parallel_calls=4)


@pytest.mark.parametrize("count", [0, -2])
def test_shuffle_and_repeat_counts_from_one(count):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"(?s)at least 1.*test_experimental_names"
    ):
        older.shuffle_and_repeat(3, count=count)


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


def test_a_database_that_cannot_be_opened_is_named(tmp_path):
    path = tmp_path / "missing.db"
    rows = older.SqlDataset("sqlite", str(path), "SELECT 1", (tf.int64,))
    with pytest.raises(InvalidArgumentError, match=r"missing\.db cannot be opened"):
        list(rows)
    assert not path.exists()


def test_a_query_gives_the_values_that_it_gives_row_by_row(tmp_path, monkeypatch):
    path = str(tmp_path / "a.db")
    cells = [1, -(2**63), 2.5, "text", "7x", None, b"raw", 2**63 - 1, -0.0]
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (a, b, c)")
        plain = [(row, row / 4, f"name {row}") for row in range(200)]
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", plain)
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", [(cell,) * 3 for cell in cells])
    types = (tf.int64, tf.float64, tf.string)

    def rows():
        found = older.SqlDataset("sqlite", path, "SELECT * FROM t", types)
        return [tuple(part.item() for part in row) for row in found]

    together = rows()
    assert together[:200] == [(row, row / 4, b"name %d" % row) for row in range(200)]
    monkeypatch.setattr(composed, "_PLAIN", {})
    assert repr(rows()) == repr(together)


def test_the_rows_before_a_failing_one_are_read(tmp_path):
    path = str(tmp_path / "a.db")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (a INTEGER)")
        database.executemany("INSERT INTO t VALUES (?)", [(row,) for row in range(100)])
    # The absolute value of the least integer is none.
    query = "SELECT abs(CASE a WHEN 70 THEN -9223372036854775808 ELSE a END) FROM t"
    expected = []
    with pytest.raises(sqlite3.Error), sqlite3.connect(path) as database:
        expected.extend(row for (row,) in database.execute(query))
    found = []
    with pytest.raises(tf.errors.UnknownError, match="integer overflow"):
        found.extend(int(row[0]) for row in older.SqlDataset("sqlite", path, query, (tf.int64,)))
    assert found == expected == list(range(len(expected)))
    assert len(expected) in (69, 70)  # some versions of sqlite3 drop the row before an error


def test_parallel_interleave_needs_a_dataset_in_turn():
    with pytest.raises(InvalidArgumentError, match="cycle_length must be at least 1, but got -1"):
        older.parallel_interleave(Dataset.from_tensors, -1)


def test_a_row_of_full_batches_is_found_without_the_other_batches():
    computed = []

    def double(batch):
        computed.append(batch.tolist())
        return 2 * batch

    batches = Dataset.range(12).batch(3, drop_remainder=True)
    doubled = batches.map(lambda b: tf.ensure_shape(tf.numpy_function(double, [b], tf.int64), [3]))
    rows = doubled.unbatch()
    computed.clear()
    assert int(older.at(rows, 10)) == 20
    assert [9, 10, 11] in computed
    assert [3, 4, 5] not in computed


def test_each_row_of_shuffled_batches_is_found_once():
    rows = Dataset.range(8).batch(2, drop_remainder=True).shuffle(4).unbatch()
    assert sorted(int(older.at(rows, index)) for index in range(8)) == list(range(8))
