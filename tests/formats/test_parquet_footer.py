import os
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenfeed as tf
from evenfeed.errors import DataLossError, NotFoundError
from evenfeed.formats.tables.parquet_footer import groups_in

HERE = Path(__file__).parent


def table(rows=7):
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
    pq.write_table(table(), path, row_group_size=3, **HOW[how])
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
    pq.write_table(table(), path, row_group_size=3, **HOW[how])
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
    pq.write_table(table(), path, row_group_size=3)
    for asked in ([("i", ">", 5)], [("s", "==", "text 6")], [("d", ">", date(2020, 1, 6))]):
        rows = tf.data.Dataset.from_parquet(path, columns=["i"], filter=asked)
        assert [int(row["i"]) for row in rows] == [6]
