import gzip
import pickle
import zlib
from pathlib import Path

import numpy as np
import pytest

import evenfeed as tf

C = tf.data.experimental.CsvDataset
M = tf.data.experimental.make_csv_dataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with two CSV files and a compressed one."""
    monkeypatch.chdir(tmp_path)
    for name, first in (("a.csv", 0), ("b.csv", 100)):
        rows = (b"%d,%.1f,t%d\n" % (n, n / 2, n) for n in range(first, first + 50))
        Path(name).write_bytes(b"n,half,text\n" + b"".join(rows))
    Path("a.gz").write_bytes(gzip.compress(Path("a.csv").read_bytes()))
    Path("a.z").write_bytes(zlib.compress(Path("a.csv").read_bytes()))
    return tmp_path


KINDS = [tf.int32, tf.float32, tf.string]
NUMBERS = [*range(50), *range(100, 150)]


@pytest.mark.parametrize("names", [["a.csv", "b.csv"], tf.constant(["a.csv", "b.csv"])])
def test_records_are_tuples(folder, names):
    dataset = C(names, KINDS, header=True)
    rows = [(int(n), float(h), t.item()) for n, h, t in dataset]
    assert rows == [(n, n / 2, b"t%d" % n) for n in NUMBERS]
    assert type(pickle.loads(pickle.dumps(dataset))) is C
    batch = next(iter(dataset.batch(60)))
    assert [part.dtype for part in batch] == [np.int32, np.float32, object]


@pytest.mark.parametrize(("name", "kind"), [("a.gz", "GZIP"), ("a.z", "ZLIB")])
def test_compressed_files_are_read_and_their_dtypes_inferred(folder, name, kind):
    (n,) = next(iter(C(name, [tf.int64], kind, header=True, select_cols=[0]).batch(50)))
    assert n.tolist() == list(range(50))
    made = M(name, 50, num_epochs=1, shuffle=False, compression_type=kind)
    assert next(iter(made))["n"].tolist() == list(range(50))


def test_files_are_read_in_turn_inside_interleave(folder):
    names = tf.data.Dataset.list_files("?.csv", shuffle=False)
    read = names.interleave(lambda name: C(name, KINDS, header=True), cycle_length=2)
    assert [int(n) for n, _, _ in read.take(4)] == [0, 100, 1, 101]


def test_explain_names_the_reader(folder):
    said = C(["a.csv", "b.csv"], KINDS, header=True).explain()
    assert "CsvDataset(2 files)" in said
    assert "resume: by position" in said


def test_batches_are_shuffled_and_endless_by_default(folder):
    dataset = M("?.csv", 8, label_name="n", shuffle_seed=3)
    features, label = dataset.element_spec
    assert label == tf.TensorSpec([8], tf.int32)
    assert list(features) == ["half", "text"]
    rows = [int(n) for _, batch in dataset.take(25) for n in batch]
    assert sorted(rows) == sorted(2 * NUMBERS)
    assert rows[:100] != rows[100:]
    assert rows != sorted(rows)
    assert rows == [
        int(n) for _, batch in M("?.csv", 8, label_name="n", shuffle_seed=3).take(25) for n in batch
    ]


def test_columns_stay_together(folder):
    for batch in M("?.csv", 7, num_epochs=1, num_parallel_reads=2):
        assert (batch["half"] * 2).tolist() == batch["n"].tolist()
        assert batch["text"].tolist() == [b"t%d" % n for n in batch["n"]]


def test_batches_resume_exactly(folder):
    dataset = M("?.csv", 7, num_epochs=1, shuffle_seed=1)
    iterator, again = iter(dataset), iter(dataset)
    for _ in range(5):
        next(iterator)
    again.set_state(iterator.get_state())
    rest = [batch["n"].tolist() for batch in iterator]
    assert len(rest) == 10
    assert [batch["n"].tolist() for batch in again] == rest


def test_errors_say_what_to_do(folder):
    with pytest.raises(ValueError, match=r"label_name is 'x', but the columns are \['n', 'half'"):
        M("?.csv", 2, label_name="x")
    with pytest.raises(ValueError, match="No files match file_pattern 'none"):
        M("none*", 2)
    Path("c.csv").write_bytes(b"other\n1\n")
    with pytest.raises(ValueError, match=r"c\.csv has the header \['other'\], but \./a\.csv has"):
        M("?.csv", 2)
    Path("d.csv").write_bytes(b"\xff,b\n1,2\n")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"d\.csv is not valid utf-8"):
        M("d.csv", 2)
    assert list(M("d.csv", 2, encoding="latin-1").element_spec) == ["ÿ", "b"]


def test_a_wrong_value_names_file_line_and_column(folder):
    Path("c.csv").write_bytes(b"a,b\n1,2\n3,x\n")
    iterator = iter(M("c.csv", 1, column_defaults=[[0], [0]], num_epochs=1, shuffle=False))
    next(iterator)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"c\.csv, line 3: column 'b' is b'x'"):
        next(iterator)
    dataset = C(["none.csv", "c.csv"], [tf.int32] * 2).ignore_errors()
    assert [int(b) for _, b in dataset] == [2]
    assert dataset.ignored_errors().count == 3
