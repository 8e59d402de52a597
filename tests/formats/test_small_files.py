"""Many small files are read together, and give what they give one by one."""

import gzip
import os
import sys
from pathlib import Path

import pytest
from tests.resuming import assert_resumes, rows_of

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.formats.bytes import small_files
from evenfeed.formats.csv_fields import CsvColumn
from evenfeed.formats.csv_files import CsvFile, CsvLayout
from evenfeed.formats.text_lines import LineFile
from evenfeed.formats.tfrecord.records import RecordFile
from evenfeed.runtime.operators.files import ReadFiles
from evenfeed.runtime.provenance import RowOrigin

PACK = {"": bytes, "GZIP": gzip.compress}
ROWS = [4, 1, 3, 0, 2, 5]


def _record_bytes(path, payloads):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)
    return path.read_bytes()


def _records(folder, kind=""):
    """Write files of some rows each, and return them with all payloads."""
    files, every = [], []
    for number, rows in enumerate(ROWS):
        payloads = [b"record %d of file %d" % (row, number) * (1 + row % 2) for row in range(rows)]
        path = folder / f"{number}.tfrecord"
        path.write_bytes(PACK[kind](_record_bytes(path, payloads)))
        files.append(RecordFile(str(path), kind))
        every += payloads
    return files, every


def _one_by_one(monkeypatch):
    monkeypatch.setattr(small_files, "_LARGEST", -1)


def _found(operator):
    """Return all rows, and the text, file and byte of each error."""
    found = []
    while True:
        try:
            block = operator.read(7)
        except tf.errors.OpError as error:
            found.append((str(error).splitlines()[0], error.file, error.offset))
            continue
        if block is None:
            return found
        found += block.columns[0].tolist()


@pytest.mark.parametrize("kind", PACK)
def test_a_position_in_small_files_is_found_again_at_every_row(tmp_path, kind, monkeypatch):
    files, every = _records(tmp_path, kind)
    assert [row[0][2] for row in assert_resumes(lambda: ReadFiles(files))] == every
    together = ReadFiles(files)
    passed = sum(together.read(most).length for most in (6, 6, 1))
    _one_by_one(monkeypatch)
    alone = ReadFiles(files)
    alone.restore(together.state())
    assert [row[0][2] for row in rows_of(alone, 2)] == every[passed:]


def test_several_small_files_are_one_block(tmp_path):
    files, every = _records(tmp_path)
    operator = ReadFiles(files[:3])
    assert [operator.read(100).length for _ in range(2)] == [4, 4]
    assert operator.read(100) is None
    assert len(every) == sum(ROWS)


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("damage", ["payload", "length", "cut", "missing", "not a file", "garbage"])
def test_a_damaged_file_among_small_ones_has_the_error_that_it_has_alone(
    tmp_path, kind, damage, monkeypatch
):
    files, _ = _records(tmp_path, kind)
    path = tmp_path / "2.tfrecord"
    raw = bytearray(gzip.decompress(path.read_bytes()) if kind else path.read_bytes())
    if damage == "payload":
        raw[-8] ^= 1
    elif damage == "length":
        raw[0] ^= 1
    elif damage == "cut":
        del raw[-5:]
    path.write_bytes(bytes(raw) if damage == "garbage" and kind else PACK[kind](bytes(raw)))
    if damage in ("missing", "not a file"):
        path.unlink()
    if damage == "not a file":
        path.mkdir()
    if damage == "garbage" and not kind:
        path.write_bytes(gzip.compress(bytes(raw)))
    together = _found(ReadFiles(files))
    _one_by_one(monkeypatch)
    assert together == _found(ReadFiles(files))
    assert any(isinstance(found, tuple) for found in together)


LINES = [b"a\nbb", b"\n", b"c\r\nd\r\n", b"e\r", b"", b"\n\nf\n", b"\x1f\x8b\x08 packed?\n", b"g\n"]


@pytest.mark.parametrize("kind", PACK)
def test_lines_of_small_files_end_with_their_file(tmp_path, kind, monkeypatch):
    files = []
    for number, text in enumerate(LINES):
        (tmp_path / f"{number}").write_bytes(PACK[kind](text))
        files.append(LineFile(str(tmp_path / f"{number}"), kind))
    together = _found(ReadFiles(files))
    assert [row for row in together if isinstance(row, bytes)][:7] == [
        *[b"a", b"bb", b"", b"c", b"d", b"e\r", b""]
    ]
    _one_by_one(monkeypatch)
    assert together == _found(ReadFiles(files))


TABLES = [
    *(b"a,b\n1,x\n2,y\n", b"a,b\n3,z", b"a,b\r\n4,p\r\n", b'a,b\n5,"q"\n', b"a,b\n", b"a,b", b""),
    *(b"a,b\n6,r\nbad,s\n7,t\n", b"a\n8,u\n", b"a,b\n9,v,w\n", b"a,b\n,x\n", b"a,b\n10,x\r11,y\n"),
    *(b"a,b\n12,x\n\n", b"\x1f\x8b,b\n13,x\n", b'a,b\n14,"open\n', b"a,b\n15,x\n", b"a,b\n16,y\n"),
]


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("has_header", [True, False])
def test_records_of_small_csv_files_end_with_their_file(tmp_path, kind, has_header, monkeypatch):
    columns = (CsvColumn("a", dtypes.int64), CsvColumn("b", dtypes.string, b""))
    layout = CsvLayout(columns, (0, 1), header=has_header)
    files = []
    for number, text in enumerate(TABLES):
        body = text if has_header else text[text.find(b"\n") + 1 :]
        (tmp_path / f"{number}").write_bytes(PACK[kind](body))
        files.append(CsvFile(str(tmp_path / f"{number}"), kind, layout))
    assert CsvFile.read_together(files[:3]).block.length == 4
    together = _found(ReadFiles(files))
    assert {1, 2, 3, 4, 5, 6, 7, 15, 16} <= set(together)
    _one_by_one(monkeypatch)
    assert together == _found(ReadFiles(files))


def test_a_position_in_small_csv_files_is_found_again_at_every_row(tmp_path):
    layout = CsvLayout((CsvColumn("a", dtypes.int64),), (0,), header=True)
    files = []
    for number, rows in enumerate(ROWS):
        path = tmp_path / f"{number}.csv"
        path.write_text("".join(["a\n", *(f"{number}{row}\n" for row in range(rows))]))
        files.append(CsvFile(str(path), "", layout))
    expected = [int(f"{number}{row}") for number, rows in enumerate(ROWS) for row in range(rows)]
    assert [row[0][2] for row in assert_resumes(lambda: ReadFiles(files))] == expected


def test_small_csv_files_of_other_layouts_are_not_read_together(tmp_path):
    files = []
    for number, dtype in enumerate([dtypes.int64, dtypes.string]):
        (tmp_path / f"{number}").write_bytes(b"1\n2\n")
        layout = CsvLayout((CsvColumn("a", dtype),), (0,))
        files.append(CsvFile(str(tmp_path / f"{number}"), "", layout))
    assert _found(ReadFiles(files)) == [1, 2, b"1", b"2"]


def test_a_row_of_a_small_file_knows_its_file_and_byte(tmp_path):
    names = [str(tmp_path / f"{number}.txt") for number in range(4)]
    for name in names:
        Path(name).write_bytes(b"".join(b"line %d\n" % row for row in range(10)))
    operator = ReadFiles(list(map(LineFile, names)))
    operator.read(10)
    block = operator.read(25)
    origin = operator.provenance(block.length)
    assert block.columns[0][15] == b"line 5"
    assert origin(15) == RowOrigin(names[2], "row 5", 35)
    os.remove(names[2])
    assert origin(15) == RowOrigin(names[2], "row 5", None)


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no pipes")
def test_a_pipe_is_not_opened_ahead(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert small_files.contents_of([LineFile(str(tmp_path / "pipe"))]) == []


def test_a_small_compressed_file_that_expands_is_read_as_a_large_one(tmp_path):
    (tmp_path / "zeros").write_bytes(gzip.compress(bytes(1 << 20) + b"\n"))
    file = LineFile(str(tmp_path / "zeros"), "GZIP")
    assert small_files.contents_of([file]) == []
    assert len(ReadFiles([file]).read(1).columns[0][0]) == 1 << 20


def test_a_shuffle_of_many_files_does_not_count_their_rows_first(tmp_path, monkeypatch):
    files, every = _records(tmp_path)
    names = [file.path for file in files] * 12

    def shuffled():
        records = tf.data.TFRecordDataset(names).shuffle(20, seed=1)
        return list(map(bytes, records.as_numpy_iterator()))

    with monkeypatch.context() as patched:
        patched.setattr("evenfeed.plan.files._MOST_COUNTED", 100)
        counted = shuffled()
    monkeypatch.setattr(RecordFile, "counted", None)
    assert shuffled() == counted
    assert sorted(counted) == sorted(every * 12)
