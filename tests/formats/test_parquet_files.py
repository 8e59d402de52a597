import os
import pickle
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.plans.comparing import assert_all_equal
from tests.resuming import assert_resumes

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.errors import DataLossError, NotFoundError
from evenfeed.formats.tables import parquet_files
from evenfeed.formats.tables.parquet_files import RowGroup, groups_in
from evenfeed.runtime.build import build
from evenfeed.runtime.positions import file_rows, small_parts
from evenfeed.runtime.run import Run

P = tf.data.Dataset.from_parquet
ROWS = 25


def table(first=0):
    numbers = np.arange(first, first + ROWS)
    return pa.table(
        {
            "n": numbers,
            "half": pa.array(numbers / 2, pa.float32()),
            "text": [f"t{n}" for n in numbers],
            "pair": pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(numbers, 2)), 2),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with two files of three row groups each, so that files have short names."""
    monkeypatch.chdir(tmp_path)
    for name, first in (("a.parquet", 0), ("b.parquet", 100)):
        pq.write_table(table(first), name, row_group_size=10)
    return tmp_path


NUMBERS = [*range(ROWS), *range(100, 100 + ROWS)]


def numbers(dataset):
    return [int(row["n"]) for row in dataset]


@pytest.mark.parametrize("paths", ["?.parquet", ["a.parquet", Path("b.parquet")], ["a.*", "b.*"]])
def test_rows_are_dicts_of_columns(folder, paths):
    dataset = P(paths)
    assert dataset.element_spec == {
        "n": tf.TensorSpec([], tf.int64),
        "half": tf.TensorSpec([], tf.float32),
        "text": tf.TensorSpec([], tf.string),
        "pair": tf.TensorSpec([2], tf.int64),
    }
    assert len(dataset) == 50
    assert numbers(dataset) == NUMBERS
    (batch,) = dataset.batch(50)
    assert batch["half"].tolist() == [n / 2 for n in NUMBERS]
    assert batch["text"].tolist() == [b"t%d" % n for n in NUMBERS]
    assert batch["pair"].tolist() == [[n, n] for n in NUMBERS]


def test_only_columns_that_are_wanted_come(folder):
    dataset = P("a.parquet", columns=["text", "n", "n"])
    assert list(dataset.element_spec) == ["text", "n"]
    row = next(iter(dataset.skip(3)))
    assert {name: part.item() for name, part in row.items()} == {"text": b"t3", "n": 3}


FILTERS = [[("n", ">", 7), ("n", "<", 102)], (pc.field("n") > 7) & (pc.field("n") < 102)]


@pytest.mark.parametrize("asked", FILTERS, ids=["tuples", "expression"])
def test_a_filter_leaves_rows_and_passes_over_row_groups(folder, asked):
    dataset = P("?.parquet", columns=["text"], filter=asked)
    left = [n for n in NUMBERS if 7 < n < 102]
    assert [row["text"].item() for row in dataset] == [b"t%d" % n for n in left]
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY
    files = [(file.path, file.number) for file in plan_of(dataset).files]
    assert files == [("./a.parquet", 0), ("./a.parquet", 1), ("./a.parquet", 2), ("./b.parquet", 0)]
    assert list(P("?.parquet", filter=[("n", "<", -5)])) == []


def test_row_groups_are_files_of_the_plan(folder):
    files = plan_of(P("a.parquet")).files
    assert [(file.number, file.first, file.rows) for file in files] == [
        (0, 0, 10),
        (1, 10, 10),
        (2, 20, 5),
    ]
    extents = [file.extent for file in files]
    assert all(start < stop for start, stop in extents)
    assert extents == sorted(extents)
    assert extents[-1][1] < Path("a.parquet").stat().st_size
    assert len({file.fingerprint for file in files}) == 3
    assert pickle.loads(pickle.dumps(files)) == files


@pytest.mark.parametrize("asked", [None, FILTERS[1]], ids=["all", "filter"])
def test_reading_resumes_anywhere(folder, asked):
    plan = plan_of(P("?.parquet", columns=["n"], filter=asked))
    assert_resumes(lambda: build(plan, Run(plan)), 4)


def test_rows_have_positions(folder):
    dataset = P("?.parquet")
    assert numbers(dataset.shard(7, 3)) == NUMBERS[3::7]
    shuffled = numbers(dataset.shuffle(50, seed=1))
    assert sorted(shuffled) == NUMBERS != shuffled
    assert "resume: by position, at once" in dataset.explain()
    assert "from_parquet" in dataset.explain()


@pytest.mark.parametrize(("most", "decoded"), [(1 << 30, {6}), (0, range(12, 25))])
def test_row_groups_are_kept_for_who_comes_back_up_to_a_limit(folder, monkeypatch, most, decoded):
    monkeypatch.setattr(file_rows, "_MOST_HELD", most)
    monkeypatch.setattr(small_parts, "_MOST_OF_ALL", most)
    seen, decode = [], RowGroup.decoded
    monkeypatch.setattr(RowGroup, "decoded", lambda group: seen.append(group) or decode(group))
    assert numbers(P("?.parquet").repeat(2)) == 2 * NUMBERS
    assert len(seen) in decoded


def test_a_dataset_is_sent_to_other_processes(folder):
    for dataset in (P("?.parquet"), P("?.parquet", filter=FILTERS[1])):
        assert numbers(pickle.loads(pickle.dumps(dataset))) == numbers(dataset)


def test_files_behind_addresses_are_read(folder):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://parquet/c.parquet", "wb") as file:
        file.write(Path("a.parquet").read_bytes())
    assert numbers(P("memory://parquet/*.parquet", filter=[("n", ">", 20)])) == [21, 22, 23, 24]


def test_nulls_are_errors_of_their_rows_or_filled(folder):
    values = [0, 1, None, 3, None]
    pq.write_table(
        pa.table({"n": values, "s": ["a", None, "c", "d", "e"]}), "c.parquet", row_group_size=3
    )
    iterator, found = iter(P("c.parquet")), []
    for _ in values:
        try:
            found.append(int(next(iterator)["n"]))
        except tf.errors.InvalidArgumentError as error:
            found.append(error.message)
    assert found == [
        0,
        "c.parquet, row 1: column 's' is null.",
        "c.parquet, row 2: column 'n' is null.",
        3,
        "c.parquet, row 4: column 'n' is null.",
    ]
    assert numbers(P("c.parquet", fill_null={"n": -1, "s": "x"})) == [0, 1, -1, 3, -1]
    assert sorted(numbers(P("c.parquet").shuffle(5).ignore_errors())) == [0, 3]
    filtered = iter(P("c.parquet", filter=[("s", "in", ["c", "d"])]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="row group 0, row 0 after the filter"):
        next(filtered)
    assert int(next(filtered)["n"]) == 3


@pytest.mark.parametrize("fills", [{"z": 1}, {"n": "x"}, {"n": [1, 2]}, {"n": None}, {"pair": 1}])
def test_wrong_fills_are_refused(folder, fills):
    with pytest.raises(tf.errors.InvalidArgumentError):
        P("a.parquet", fill_null=fills)


def test_a_missing_column_names_near_ones(folder):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"a\.parquet has no column 'txt'"
    ) as said:
        P("a.parquet", columns=["txt"])
    assert "did you mean 'text'? its columns are ['n', 'half', 'text', 'pair']" in str(said.value)
    with pytest.raises(TypeError, match="columns must be a list of names, but got 'n'"):
        P("a.parquet", columns="n")
    pq.write_table(pa.table({"n": ["x"]}), "c.parquet")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"'n' has type string in c\.parquet, but int64"
    ):
        P(["a.parquet", "c.parquet"], columns=["n"])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"c\.parquet has no column 'half'"):
        P(["a.parquet", "c.parquet"], columns=["half"])


@pytest.mark.parametrize("asked", [[("z", ">", 1)], [("n", "?", 1)], "n > 1", 3, [("n", ">", "x")]])
def test_wrong_filters_are_refused(folder, asked):
    with pytest.raises(tf.errors.InvalidArgumentError, match="filter"):
        P("a.parquet", filter=asked)


def test_files_that_cannot_be_read_are_named(folder):
    with pytest.raises(tf.errors.NotFoundError, match=r"none\.parquet does not exist"):
        P("none.parquet")
    with pytest.raises(tf.errors.FailedPreconditionError, match="is a directory") as caught:
        P(str(folder))
    assert f"as a pattern: {str(folder / '*')!r}" in str(caught.value)
    with pytest.raises(tf.errors.InvalidArgumentError, match="paths is empty"):
        P([])
    whole = Path("a.parquet").read_bytes()
    Path("cut.parquet").write_bytes(whole[:-9])
    with pytest.raises(
        tf.errors.DataLossError, match=r"cut\.parquet is damaged, or not a valid Parquet file"
    ):
        P("cut.parquet")


def test_a_damaged_row_group_is_an_error_and_the_others_are_read(folder):
    data = bytearray(Path("a.parquet").read_bytes())
    start, stop = plan_of(P("a.parquet")).files[1].extent
    data[start:stop] = bytes(stop - start)
    Path("a.parquet").write_bytes(data)
    left = [*range(10), *range(20, 25)]
    with pytest.raises(
        tf.errors.DataLossError, match=r"a\.parquet is damaged.*row group 1, at byte"
    ):
        numbers(P("a.parquet"))
    for dataset in (P("a.parquet"), P("a.parquet", filter=[("n", ">=", 0)])):
        assert numbers(dataset.ignore_errors()) == left


def test_a_file_without_rows_is_empty(folder):
    pq.write_table(table().slice(0, 0), "e.parquet")
    assert len(P("e.parquet")) == 0
    assert list(P("e.parquet")) == []
    assert numbers(P(["e.parquet", "a.parquet"])) == list(range(ROWS))


def test_lists_of_many_lengths_are_padded_by_who_batches(folder):
    pq.write_table(pa.table({"x": [[1], [2, 3], []]}), "r.parquet")
    (batch,) = P("r.parquet").padded_batch(3)
    assert batch["x"].tolist() == [[1, 0], [2, 3], [0, 0]]


HERE = Path(__file__).parent


def footer_table(rows=7):
    numbers = range(rows)
    return pa.table(
        {
            "i": pa.array(numbers, pa.int64()),
            "f": pa.array(np.arange(rows) / 2, pa.float32()),
            "s": [f"text {n}" for n in numbers],
            "b": [n % 2 == 0 for n in numbers],
            "l": pa.array([[n] * (n % 3) for n in numbers], pa.list_(pa.int32())),
            "t": [{"a": n, "z": [str(n)]} for n in numbers],
            "d": [date(2020, 1, 1 + n) for n in numbers],
            "n": pa.array([None if n == 1 else n for n in numbers], pa.int16()),
            "x": pa.array([b"ab%d" % n for n in numbers], pa.binary(3)),
            "w": [datetime(2020, 1, 1 + n) for n in numbers],
        }
    )


HOW = {
    "usual": {},
    "old": {"version": "1.0", "write_page_index": True, "compression": "none"},
    "plain": {"use_dictionary": False, "write_statistics": False, "store_schema": False},
}


@pytest.mark.parametrize("how", HOW)
def test_the_row_groups_are_those_that_pyarrow_finds(tmp_path, how):
    path = tmp_path / "file"
    pq.write_table(footer_table(), path, row_group_size=3, **HOW[how])
    about = pq.read_metadata(path)
    found = groups_in(str(path))
    assert [group.rows for group in found] == [3, 3, 1]
    for number, group in enumerate(found):
        told = about.row_group(number)
        chunks = [told.column(column) for column in range(told.num_columns)]
        starts = [
            chunk.data_page_offset
            if chunk.dictionary_page_offset is None
            else min(chunk.dictionary_page_offset, chunk.data_page_offset)
            for chunk in chunks
        ]
        assert group.span == (starts[0], starts[-1] + chunks[-1].total_compressed_size)


def test_a_long_table_is_read_in_two_pieces(tmp_path):
    path = tmp_path / "file"
    pq.write_table(pa.table({f"c{n}": [n, n] for n in range(800)}), path, row_group_size=1)
    assert int.from_bytes(path.read_bytes()[-8:-4], "little") > 1 << 16
    assert [group.rows for group in groups_in(str(path))] == [1, 1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "does not end"),
        (b"PAR1", "does not end"),
        (b"hello" * 99, "does not end"),
        (b"PAR1" + b"\xff\xff\0\0PAR1", "65535 bytes"),
        (b"PAR1" + b"\0\0\0\0PAR1", "ends in the middle of a value"),
        (b"PAR1" + b"\0\1\0\0\0PAR1", "field 2 is missing"),
        (b"PAR1" + b"\0\0\0\0PARE", "encrypted"),
    ],
)
def test_what_has_no_such_table_says_why(tmp_path, content, why):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(DataLossError, match=f"file is damaged, or not a valid Parquet file.*{why}"):
        groups_in(str(path))


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(NotFoundError):
        groups_in(str(tmp_path / "none"))


@pytest.mark.parametrize("how", HOW)
def test_no_flipped_bit_of_the_table_ends_the_process(tmp_path, how):
    path = tmp_path / "file"
    pq.write_table(footer_table(), path, row_group_size=3, **HOW[how])
    size = 8 * int.from_bytes(path.read_bytes()[-8:-4], "little")
    done = subprocess.run(
        [sys.executable, HERE / "programs" / "flip_bits.py", path, "0", str(size // 200)],
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read, failed = map(int, done.stdout.split())
    assert read > 20
    assert failed > 20


def test_a_filter_still_passes_over_row_groups(tmp_path):
    path = tmp_path / "file"
    pq.write_table(footer_table(), path, row_group_size=3)
    for asked in ([("i", ">", 5)], [("s", "==", "text 6")], [("d", ">", date(2020, 1, 6))]):
        rows = tf.data.Dataset.from_parquet(path, columns=["i"], filter=asked)
        assert [int(row["i"]) for row in rows] == [6]


def test_short_and_long_row_groups_are_decoded_alike(tmp_path, monkeypatch):
    rows = [{"a": row, "a.b": f"{row}", "c": {"d": [row] * 2, "e": row / 2}} for row in range(9)]
    path = str(tmp_path / "table.parquet")
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=4)
    for columns in (None, ["a"], ["c", "a.b"]):
        found = [list(tf.data.Dataset.from_parquet(path, columns))]
        with monkeypatch.context() as patched:
            patched.setattr(parquet_files, "_IN_PARALLEL", 0)
            found.append(list(tf.data.Dataset.from_parquet(path, columns)))
        assert len(found[0]) == len(rows)
        assert_all_equal(*found)
