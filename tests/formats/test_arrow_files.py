import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, ipc
from tests.resuming import assert_resumes

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.formats.tables import arrow_files
from evenfeed.formats.tables.arrow_files import RecordBatch
from evenfeed.runtime.build import build
from evenfeed.runtime.run import Run

A = tf.data.Dataset.from_arrow
ROWS = 25


def table(first=0):
    numbers = np.arange(first, first + ROWS)
    return pa.table(
        {
            "n": numbers,
            "text": [f"t{n}" for n in numbers],
            "kind": pa.array([f"k{n % 3}" for n in numbers]).dictionary_encode(),
            "pair": pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(numbers, 2)), 2),
        }
    )


def write(path, rows, *, stream=False, compression=None, size=10):
    options = ipc.IpcWriteOptions(compression=compression)
    made = ipc.new_stream if stream else ipc.new_file
    with made(str(path), rows.schema, options=options) as writer:
        writer.write_table(rows, max_chunksize=size)


@pytest.fixture(
    params=[(stream, packed) for stream in (False, True) for packed in (None, "lz4", "zstd")],
    ids=lambda how: f"{'stream' if how[0] else 'file'}-{how[1] or 'plain'}",
)
def how(request):
    return {"stream": request.param[0], "compression": request.param[1]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


NUMBERS = [*range(ROWS), *range(100, 100 + ROWS)]


def numbers(dataset):
    return [int(row["n"]) for row in dataset]


def test_rows_are_dicts_of_columns(folder, how):
    write("a.arrow", table(), **how)
    write("b.arrow", table(100), **how)
    dataset = A("?.arrow")
    assert dataset.element_spec == {
        "n": tf.TensorSpec([], tf.int64),
        "text": tf.TensorSpec([], tf.string),
        "kind": tf.TensorSpec([], tf.string),
        "pair": tf.TensorSpec([2], tf.int64),
    }
    assert len(dataset) == 50
    assert numbers(dataset) == NUMBERS
    (batch,) = dataset.batch(50)
    assert batch["text"].tolist() == [b"t%d" % n for n in NUMBERS]
    assert batch["kind"].tolist() == [b"k%d" % (n % 3) for n in NUMBERS]
    assert batch["pair"].tolist() == [[n, n] for n in NUMBERS]
    for names in (["kind"], ["pair", "text"]):
        row = next(iter(A("a.arrow", columns=names).skip(13)))
        assert list(row) == names
        assert row[names[0]].tolist() == {"kind": b"k1", "pair": [13, 13]}[names[0]]


def test_record_batches_are_files_of_the_plan(folder, how):
    write("a.arrow", table(), **how)
    files = plan_of(A("a.arrow")).files
    assert [(file.number, file.first, file.rows) for file in files] == [
        (0, 0, 10),
        (1, 10, 10),
        (2, 20, 5),
    ]
    extents = [file.extent for file in files]
    assert all(start < stop for start, stop in extents)
    assert all(one[1] <= other[0] for one, other in pairwise(extents))
    assert extents[-1][1] <= Path("a.arrow").stat().st_size
    assert len({file.fingerprint for file in files}) == 3
    assert pickle.loads(pickle.dumps(files)) == files


@pytest.mark.parametrize("stream", [False, True])
def test_numbers_that_are_not_compressed_are_views_of_the_file(folder, stream, monkeypatch):
    # Other tests of this process may have mapped many files.
    monkeypatch.setattr(arrow_files, "many_are_mapped", lambda: False)
    write("a.arrow", table(), stream=stream)
    file = plan_of(A("a.arrow", columns=["n", "pair"])).files[1]
    for column in file.decoded().block.columns:
        base = column
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        assert not column.flags.owndata
        assert not column.flags.writeable
        assert isinstance(base, pa.Array)
    place = Path("a.arrow").read_bytes().index(np.arange(10, 20).tobytes())
    assert file.extent[0] < place < file.extent[1]


def test_reading_resumes_anywhere(folder):
    write("a.arrow", table())
    plan = plan_of(A("a.arrow", columns=["n"]))
    assert_resumes(lambda: build(plan, Run(plan)), 4)


def test_rows_have_positions(folder, how):
    for name, first in (("a.arrow", 0), ("b.arrow", 100)):
        write(name, table(first), **how)
    dataset = A("?.arrow")
    assert numbers(dataset.shard(7, 3)) == NUMBERS[3::7]
    shuffled = numbers(dataset.shuffle(50, seed=1))
    assert sorted(shuffled) == NUMBERS != shuffled
    assert "resume: by position, at once" in dataset.explain()
    assert "from_arrow" in dataset.explain()
    assert numbers(pickle.loads(pickle.dumps(dataset))) == NUMBERS


def test_feather_files_are_read_and_old_ones_refused(folder):
    feather.write_feather(table(), "a.feather")
    assert numbers(A("a.feather")) == list(range(ROWS))
    Path("old.feather").write_bytes(b"FEA1\0\0\0\0FEA1")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"old\.feather is a Feather version 1 file"
    ):
        A("old.feather")


def test_files_behind_addresses_are_read(folder, how):
    fsspec = pytest.importorskip("fsspec")
    write("a.arrow", table(), **how)
    with fsspec.open("memory://arrow/c.arrow", "wb") as file:
        file.write(Path("a.arrow").read_bytes())
    assert numbers(A("memory://arrow/*.arrow", columns=["n"])) == list(range(ROWS))


def test_nulls_are_errors_of_their_rows_or_filled(folder):
    write("c.arrow", pa.table({"n": [0, 1, None, 3]}), size=3)
    iterator = iter(A("c.arrow"))
    assert [int(next(iterator)["n"]) for _ in range(2)] == [0, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"c\.arrow, row 2: column 'n' is"):
        next(iterator)
    assert int(next(iterator)["n"]) == 3
    assert numbers(A("c.arrow", fill_null={"n": -1})) == [0, 1, -1, 3]


def test_files_without_rows_are_empty(folder, how):
    write("e.arrow", table().slice(0, 0), **how)
    assert len(A("e.arrow")) == 0
    assert list(A("e.arrow")) == []
    write("a.arrow", table())
    assert numbers(A(["e.arrow", "a.arrow"])) == list(range(ROWS))


def test_two_columns_of_one_name_are_refused_where_they_are_wanted(folder):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["x", "x", "n"])
    write("a.arrow", twice)
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than one column 'x'"):
        A("a.arrow")
    assert numbers(A("a.arrow", columns=["n"])) == [3]


def test_a_file_that_is_cut_short_while_it_is_read_is_an_error(folder):
    write("a.arrow", table())
    files = plan_of(A("a.arrow")).files
    reader = files[0].open()
    assert reader.read(0, 10).length == 10
    with Path("a.arrow").open("r+b") as file:
        file.truncate(200)
    with pytest.raises(tf.errors.DataLossError):
        files[1].open().read(0, 10)


def _damaged(whole, place, bit):
    data = bytearray(whole)
    data[place] ^= 1 << bit
    Path("bad.arrow").write_bytes(data)
    try:
        list(A("bad.arrow").as_numpy_iterator())
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        assert "bad.arrow" in error.message  # noqa: PT017 - most of them fail, in one of two ways
        return 1
    return 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_flipped_bit_is_another_value_or_an_error_that_names_the_file(folder, stream):
    write("a.arrow", table(), stream=stream)
    whole = Path("a.arrow").read_bytes()
    rng = np.random.default_rng(0)
    places = rng.integers(0, len(whole), 150).tolist()
    failed = sum(_damaged(whole, place, place % 8) for place in places)
    assert 0 < failed < len(places)


def test_record_batches_are_compared(folder):
    write("a.arrow", table())
    one, other = (plan_of(A("a.arrow")).files for _ in range(2))
    assert one == other
    assert all(isinstance(batch, RecordBatch) for batch in one)
