import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of

from evenfeed.core.errors import DataLossError, FailedPreconditionError, NotFoundError
from evenfeed.formats.tfrecord import records
from evenfeed.formats.tfrecord.framing import masked
from evenfeed.formats.tfrecord.record_writer import TFRecordWriter
from evenfeed.formats.tfrecord.records import RecordFile
from evenfeed.runtime.operators.files import ReadFiles

DATA = Path(__file__).parent / "data"
PACKED = {"": lambda raw: raw, "GZIP": gzip.compress, "ZLIB": zlib.compress}
FEW = [b"", b"abc", b"x" * 50, b"abc"]


def written(path, payloads, options=None):
    with TFRecordWriter(path, options) as writer:
        for payload in payloads:
            writer.write(payload)
    return path.read_bytes()


def read_all(file, most=3):
    """Return the records, with the class of the error in place of an unreadable one."""
    rows = rows_of(ReadFiles([file]), most, limit=10_000)
    return [row if isinstance(row, type) else row[0][2] for row in rows]


def broken(path, raw, compression=""):
    path.write_bytes(PACKED[compression](raw))
    return RecordFile(str(path), compression)


def by_position(file):
    """Return the same as `read_all`, fetching each row by number."""
    found = []
    for row in range(file.counted()):
        try:
            found.append(file.open().fetch(np.array([row])).columns[0][0])
        except DataLossError as error:
            found.append(type(error))
    return found


@pytest.mark.parametrize(("name", "how"), [("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")])
def test_files_that_tensorflow_wrote_are_read_and_written_alike(tmp_path, name, how):
    theirs = DATA / f"{name}.tfrecord"
    payloads = read_all(RecordFile(str(theirs), how))
    assert [len(payload) for payload in payloads] == [0, 53, 62, 62, 62]
    ours = written(tmp_path / "ours", payloads, how)
    packed = {"": lambda raw: raw, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}[how]
    assert packed(ours) == packed(theirs.read_bytes())


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@settings(max_examples=40)
@given(payloads=st.lists(st.binary(max_size=40), max_size=12))
def test_what_was_written_comes_back(tmp_path_factory, compression, payloads):
    path = tmp_path_factory.mktemp("records") / "file"
    written(path, payloads, compression)
    file = RecordFile(str(path), compression)
    assert read_all(file, 5) == payloads
    assert file.rows is None
    assert file.counted() == (None if compression else len(payloads))
    if payloads and not compression:
        order = np.arange(len(payloads))[::-1].copy()
        assert file.open().fetch(order).columns[0].tolist() == payloads[::-1]


def test_several_compressed_streams_are_one_file(tmp_path):
    raw = written(tmp_path / "one", FEW)
    path = tmp_path / "two"
    path.write_bytes(gzip.compress(raw) + gzip.compress(raw))
    assert read_all(RecordFile(str(path), "GZIP")) == FEW + FEW


def test_long_compressed_files_are_read_in_windows(tmp_path):
    payloads = [bytes([i % 256]) * 5000 for i in range(300)]
    written(tmp_path / "long", payloads, "ZLIB")
    assert read_all(RecordFile(str(tmp_path / "long"), "ZLIB"), 20)[:60] == payloads[:60]
    reader = RecordFile(str(tmp_path / "long"), "ZLIB").open()
    assert reader.read(299, 5).columns[0].tolist() == payloads[299:]
    assert reader.read(0, 1).columns[0].tolist() == payloads[:1]  # from the start again
    assert reader.read(300, 1) is None


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_cut_file_gives_its_whole_records_and_then_an_error(tmp_path, compression):
    raw = written(tmp_path / "whole", FEW)
    ends = np.cumsum([0] + [16 + len(payload) for payload in FEW]).tolist()
    for size in range(len(raw)):
        whole = sum(end <= size for end in ends[1:])
        expected = FEW[:whole] + ([] if size in ends else [DataLossError])
        file = broken(tmp_path / "cut", raw[:size], compression)
        assert read_all(file) == expected, size
        if not compression:
            assert file.counted() == (len(expected) if size in ends else None)


def test_a_flipped_bit_is_found_wherever_it_is(tmp_path):
    raw = written(tmp_path / "whole", FEW)
    for place in range(len(raw)):
        bad = bytearray(raw)
        bad[place] ^= 1 << place % 8
        file = broken(tmp_path / "bad", bytes(bad))
        found = read_all(file)
        assert found.count(DataLossError) == 1
        at = found.index(DataLossError)
        if file.counted() is None:  # records after a damaged length cannot be found
            assert found == [*FEW[:at], DataLossError]
        else:
            assert found == [*FEW[:at], DataLossError, *FEW[at + 1 :]]
            assert by_position(file) == found


def test_an_error_names_the_file_and_the_byte(tmp_path):
    raw = bytearray(written(tmp_path / "whole", FEW))
    raw[16 + 12] ^= 1
    reader = broken(tmp_path / "bad", bytes(raw)).open()
    assert reader.read(0, 1).length == 1
    with pytest.raises(
        DataLossError, match=r"bad is damaged at byte 28: the checksum of the record"
    ):
        reader.read(1, 1)
    raw[8] ^= 1
    with pytest.raises(
        DataLossError, match=r"at byte 0: the checksum of the record length.*uncompressed"
    ):
        broken(tmp_path / "bad", bytes(raw)).open().read(0, 1)


@pytest.mark.parametrize("length", [1 << 20, 1 << 40, 2**64 - 1])
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_lying_length_takes_no_memory(tmp_path, length, compression):
    said = struct.pack("<Q", length)
    raw = said + struct.pack("<I", masked(said)) + b"few"
    file = broken(tmp_path / "lie", raw, compression)
    with pytest.raises(DataLossError, match=f"{length} bytes"):
        file.open().read(0, 1)
    assert read_all(file) == [DataLossError]


def test_a_compressed_file_read_as_plain_is_no_record_file(tmp_path):
    written(tmp_path / "packed", FEW, "GZIP")
    assert read_all(RecordFile(str(tmp_path / "packed"))) == [DataLossError]


def test_a_plain_file_read_as_compressed_is_damaged(tmp_path):
    written(tmp_path / "plain", FEW)
    for compression in ("GZIP", "ZLIB"):
        assert read_all(RecordFile(str(tmp_path / "plain"), compression)) == [DataLossError]


def test_files_that_cannot_be_opened(tmp_path):
    missing = RecordFile(str(tmp_path / "none"))
    assert missing.extent == (0, 0)
    assert read_all(missing) == [NotFoundError]
    assert missing.counted() is None
    written(tmp_path / "none", FEW)
    assert missing.counted() == len(FEW)
    (tmp_path / "none").unlink()
    with pytest.raises(NotFoundError, match="none does not exist"):
        missing.open().fetch(np.array([0]))
    with pytest.raises(FailedPreconditionError, match="is a directory"):
        RecordFile(str(tmp_path)).open().read(0, 1)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_bytes_end_in_records_or_an_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "file"
    raw = bytearray(written(path, data.draw(st.lists(st.binary(max_size=20), max_size=5))))
    for place, byte in data.draw(
        st.lists(st.tuples(st.integers(0, max(0, len(raw) - 1)), st.integers(0, 255)), max_size=4)
    ):
        raw[place : place + 1] = bytes([byte])
    raw += data.draw(st.binary(max_size=30))
    compression = data.draw(st.sampled_from(["", "", "GZIP", "ZLIB"]))
    file = RecordFile(str(path), compression)
    path.write_bytes(bytes(raw) if data.draw(st.booleans()) else PACKED[compression](bytes(raw)))
    found = read_all(file, data.draw(st.integers(1, 4)))
    assert len(found) < 20
    again = RecordFile(str(path), compression)
    if again.counted() is not None:
        assert by_position(again) == found


def plainly(raw):
    """Return the payloads of a file, parsed record by record as the format is specified."""
    found, place = [], 0
    while place < len(raw):
        header = raw[place : place + 12]
        length = struct.unpack("<Q", header[:8])[0] if len(header) == 12 else 0
        record = raw[place + 12 : place + 12 + length + 4]
        whole = len(header) == 12 and len(record) == length + 4
        if not whole or struct.pack("<I", masked(header[:8])) != header[8:]:
            return [*found, DataLossError]
        right = struct.pack("<I", masked(record[:-4])) == record[-4:]
        found.append(record[:-4] if right else DataLossError)
        place += 16 + length
    return found


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_many_records_at_once_are_those_one_by_one(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("many") / "file"
    chance = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    kinds = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=3))
    lengths = np.repeat(chance.choice(kinds, 5), chance.integers(1, 150, 5))
    raw = bytearray(written(path, map(chance.bytes, lengths.tolist())))
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=3)):
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    raw = raw[: data.draw(st.sampled_from([len(raw), len(raw) - 1, len(raw) // 2]))]
    compression = data.draw(st.sampled_from(["", "ZLIB"]))
    file = broken(path, bytes(raw), compression)
    expected = plainly(bytes(raw))
    assert read_all(file, data.draw(st.sampled_from([3, 200, 5000]))) == expected
    if DataLossError not in expected and not compression:
        order = chance.permutation(len(expected))
        assert file.open().fetch(order).columns[0].tolist() == [expected[row] for row in order]


def test_records_longer_than_a_piece_are_read(tmp_path):
    payloads = [b"a" * 10, b"b" * 700_000, b"c" * 300_000, b"d", b"e" * 20_000] * 2
    for compression in ("", "GZIP"):
        written(tmp_path / "long", payloads, compression)
        assert read_all(RecordFile(str(tmp_path / "long"), compression), 100) == payloads


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_resume_is_exact_also_behind_damage(tmp_path, compression):
    raw = bytearray(written(tmp_path / "whole", FEW))
    raw[16 + 12] ^= 1  # the second record
    raw[-30] ^= 1  # inside the third
    files = [
        broken(tmp_path / "bad", bytes(raw), compression),
        RecordFile(str(tmp_path / "none")),
        broken(tmp_path / "cut", bytes(raw[:-1]), compression),
    ]
    assert_resumes(lambda: ReadFiles(files))


def test_resume_does_not_read_what_comes_before(tmp_path):
    payloads = [b"%04d" % number for number in range(1000)]
    raw = bytearray(written(tmp_path / "file", payloads))
    file = RecordFile(str(tmp_path / "file"))
    first = ReadFiles([file])
    first.read(900)
    raw[: 800 * 20] = bytes(800 * 20)  # no record can be parsed from this
    (tmp_path / "file").write_bytes(bytes(raw))
    second = ReadFiles([file])
    second.restore(first.state())
    assert second.read(200).columns[0].tolist() == payloads[900:]


def test_large_files_are_not_counted(tmp_path, monkeypatch):
    written(tmp_path / "file", FEW)
    monkeypatch.setattr(records, "_MOST_COUNTED", 10)
    assert RecordFile(str(tmp_path / "file")).counted() is None


def test_a_file_that_became_shorter_is_an_error(tmp_path):
    raw = written(tmp_path / "file", FEW)
    file = RecordFile(str(tmp_path / "file"))
    assert file.counted() == len(FEW)
    (tmp_path / "file").write_bytes(raw[:20])
    with pytest.raises(DataLossError, match="truncated"):
        file.open().fetch(np.array([3]))


def test_a_file_that_is_written_again_is_counted_again(tmp_path):
    path = tmp_path / "file"
    written(path, FEW)
    file = RecordFile(str(path))
    assert file.counted() == len(FEW)
    reader = file.open()
    written(path, FEW[:2])
    assert file.counted() == 2
    assert file.open().fetch(np.array([1])).columns[0].tolist() == FEW[1:2]
    with pytest.raises(DataLossError, match="changed while it was being read"):
        reader.fetch(np.array([3]))
