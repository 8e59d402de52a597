import gzip
import zlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of

from evenfeed.core.errors import (
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
)
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.text_lines import LineFile, LineReader
from evenfeed.plan.files import Files
from evenfeed.runtime.build import build
from evenfeed.runtime.operators.files import ReadFiles
from evenfeed.runtime.run import Run

PACK = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
ANY_LINES = st.lists(
    st.one_of(st.binary(max_size=9), st.sampled_from([b"", b"\r", b"\0", b"x" * 300])), max_size=30
)


def written(folder, data, compression="", name="lines"):
    path = folder / name
    path.write_bytes(PACK[compression](data))
    return str(path)


def lines_of(reader, most=7):
    found, row = [], 0
    while (block := reader.read(row, most)) is not None:
        found += block.columns[0].tolist()
        row += block.length
    reader.close()
    return found


def plain(data):
    """Return the lines of bytes: slow but simple."""
    lines, line = [], b""
    for byte in data:
        line += bytes([byte])
        if byte == 10:
            lines.append(line[:-2] if line.endswith(b"\r\n") else line[:-1])
            line = b""
    return lines + [line] * (line != b"")


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\n\n", [b"a", b""]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\n\r\nb", [b"a", b"", b"b"]),
        (b"a\rb\n\r", [b"a\rb", b"\r"]),
        (b"\xff\0\n\xfe", [b"\xff\0", b"\xfe"]),
    ],
)
@pytest.mark.parametrize("compression", PACK)
def test_lines_come_without_their_ends(tmp_path, data, lines, compression):
    assert lines_of(LineReader(written(tmp_path, data, compression), compression)) == lines
    assert plain(data) == lines


@ONE_FOLDER
@given(ANY_LINES, st.sampled_from(sorted(PACK)), st.integers(1, 50), st.integers(1, 9))
def test_any_bytes_that_were_written_come_back(tmp_path, lines, compression, first_read, most):
    lines = [line.replace(b"\n", b"").removesuffix(b"\r") for line in lines]
    path = written(tmp_path, b"".join(line + b"\n" for line in lines), compression)
    assert lines_of(LineReader(path, compression, first_read), most) == lines


@ONE_FOLDER
@given(
    st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"ab", b"c"]), max_size=40), st.integers(1, 9)
)
def test_where_reads_end_does_not_matter(tmp_path, parts, first_read):
    data = b"".join(parts)
    path = written(tmp_path, data)
    assert lines_of(LineReader(path, "", first_read)) == plain(data)
    assert lines_of(LineReader(path, "", first_read, uncut=True)) == plain(data)


@ONE_FOLDER
@given(
    st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"ab", b"c"]), max_size=20),
    st.lists(st.integers(0, 40), max_size=4),
    st.integers(1, 9),
)
def test_ranges_of_bytes_share_out_the_lines(tmp_path, parts, cuts, first_read):
    data = b"".join(parts)
    path = written(tmp_path, data)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = [
        lines_of(LineReader(path, "", first_read, within=(start, stop)))
        for start, stop in pairwise(bounds)
    ]
    assert [line for lines in found for line in lines] == plain(data)


def test_a_position_in_a_range_of_bytes_is_found_again(tmp_path):
    file = LineFile(written(tmp_path, b"a\nbb\n\nccc\r\nd\n" + b"e\n" * 9)).part(1, 20)
    node = Files((file,), TensorSpec([], "string"))
    found = assert_resumes(lambda: build(node, Run(node)))
    assert [row[0][2] for row in found] == [b"bb", b"", b"ccc", b"d", *[b"e"] * 4]
    assert file.named(3) == "row 3 after byte 1"


def test_a_line_may_be_longer_than_many_reads(tmp_path):
    long = b"x" * 5_000_000
    path = written(tmp_path, b"a\n" + long + b"\nb")
    assert lines_of(LineReader(path)) == [b"a", long, b"b"]


@pytest.mark.parametrize("compression", PACK)
def test_rows_are_found_by_number_too(tmp_path, compression):
    lines = [str(number).encode() for number in range(200)]
    path = written(tmp_path, b"\n".join(lines), compression)
    reader = LineReader(path, compression, 16)
    for row in (150, 3, 199, 0):
        assert reader.read(row, 1).columns[0].tolist() == [lines[row]]
    assert reader.read(200, 1) is None
    assert reader.fetch(np.array([7, 5, 190])).columns[0].tolist() == [
        lines[7],
        lines[5],
        lines[190],
    ]


@pytest.mark.parametrize("compression", PACK)
def test_a_position_is_found_again_at_every_line(tmp_path, compression, monkeypatch):
    monkeypatch.setattr(LineFile, "open", lambda self: LineReader(self.path, self.compression, 3))
    paths = [
        written(tmp_path, data, compression, name=f"{number}")
        for number, data in enumerate([b"a\nbb\n\nccc\r\nd", b"", b"e\n" * 9])
    ]
    node = Files(tuple(LineFile(path, compression) for path in paths), TensorSpec([], "string"))
    found = assert_resumes(lambda: build(node, Run(node)))
    assert [row[0][2] for row in found] == [b"a", b"bb", b"", b"ccc", b"d", *[b"e"] * 9]


def test_a_plain_file_is_not_read_again_from_its_beginning(tmp_path):
    path = written(tmp_path, b"".join(b"%07d\n" % number for number in range(500_000)))
    reading = ReadFiles([LineFile(path)])
    passed = 0
    while passed < 400_000:
        passed += reading.read(10_000).length
    state = reading.state()
    assert state[2][0] > 1_500_000  # the byte at which it resumes
    with open(path, "r+b") as file:
        file.write(b"\n" * 1_000_000)  # earlier bytes are not read again
    again = ReadFiles([LineFile(path)])
    again.restore(state)
    assert again.read(1).columns[0].tolist() == [b"%07d" % passed]


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"none\.txt does not exist"):
        LineFile(str(tmp_path / "none.txt")).open()
    with pytest.raises(NotFoundError, match=r"x/deep does not exist"):
        LineFile(written(tmp_path, b"", name="x") + "/deep").open()
    with pytest.raises(FailedPreconditionError, match="is a directory"):
        LineFile(str(tmp_path)).open()


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_plain_file_is_not_decompressed(tmp_path, compression):
    reader = LineReader(written(tmp_path, b"one\ntwo\n"), compression)
    with pytest.raises(DataLossError, match=r"lines cannot be decompressed at byte 0.*header"):
        reader.read(0, 1)


def test_a_gzip_file_is_not_read_as_lines(tmp_path):
    reader = LineReader(written(tmp_path, b"one\n", "GZIP"))
    with pytest.raises(
        DataLossError, match=r"it starts with a GZIP header[^$]*fix: pass compression_type"
    ):
        reader.read(0, 1)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_what_comes_before_the_end_of_a_cut_file_comes_first(tmp_path, compression):
    data = np.random.default_rng(0).bytes(3_000_000)
    path = tmp_path / "cut"
    path.write_bytes(PACK[compression](data)[:-100])
    following = LineFile(written(tmp_path, b"next\n"))
    found = rows_of(ReadFiles([LineFile(str(path), compression), following]), 500, 10**6)
    assert found[-2:] == [DataLossError, [("object", (), b"next")]]
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    assert len(found) > 10_000
    assert [row[0][2] for row in found[:-2]] == lines[: len(found) - 2]


@ONE_FOLDER
@given(st.binary(max_size=60), st.sampled_from(["GZIP", "ZLIB"]))
def test_no_bytes_make_decompression_crash(tmp_path, data, compression):
    (tmp_path / "fuzz").write_bytes(data)
    reader = LineReader(str(tmp_path / "fuzz"), compression)
    if not data:
        assert lines_of(reader) == []
        return
    with pytest.raises(DataLossError, match="fuzz cannot be decompressed at byte"):
        lines_of(reader)  # random bytes never have a valid checksum


@ONE_FOLDER
@given(st.integers(0, 10**6), st.integers(0, 7), st.sampled_from(["GZIP", "ZLIB"]))
def test_a_flipped_bit_is_never_another_line(tmp_path, byte, bit, compression):
    lines = [str(number * number).encode() for number in range(60)]
    packed = bytearray(PACK[compression](b"\n".join(lines)))
    packed[byte % len(packed)] ^= 1 << bit
    (tmp_path / "flipped").write_bytes(packed)
    try:
        found = lines_of(LineReader(str(tmp_path / "flipped"), compression))
    except DataLossError:
        return
    assert found == lines  # ignored bits, such as the time in the header


def test_a_small_file_cannot_fill_the_memory(tmp_path):
    path = written(tmp_path, b"\n" * 50_000_000, "GZIP")
    reader = LineReader(path, "GZIP")
    assert sum(reader.read(0, 1).length for _ in range(1)) == 1
    assert reader.read(0, 10**9).length <= 1 << 21


def test_files_of_another_place_are_the_same_for_states_but_not_for_snapshots(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = (LineFile(written(tmp_path / name, b"x\n")) for name in "ab")
    assert one.fingerprint == other.fingerprint != LineFile(one.path, "GZIP").fingerprint
    assert one.identity != other.identity
    before = one.identity
    written(tmp_path / "a", b"xy\n")
    assert one.identity != before
    assert "missing" in LineFile("nowhere").identity
