import gzip
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of

from evenfeed.core.errors import DataLossError, InvalidArgumentError, NotFoundError
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.fixed_records import FixedRecordFile, MappedRecords, StreamedRecords
from evenfeed.plan.files import Files
from evenfeed.runtime.build import build
from evenfeed.runtime.operators.files import ReadFiles
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.run import Run

PACK = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def file_of(folder, data, compression="", name="records", **sizes):
    (folder / name).write_bytes(PACK[compression](data))
    return FixedRecordFile(str(folder / name), compression, **sizes)


def operator(*files):
    node = Files(files, TensorSpec([], "string"), as_reader=True)
    return build(node, Run(node))


def records_of(*files):
    return [row if isinstance(row, type) else row[0][2] for row in rows_of(operator(*files), 3)]


@ONE_FOLDER
@given(
    st.lists(st.binary(min_size=3, max_size=3), max_size=20),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from(sorted(PACK)),
)
def test_records_come_back_without_header_and_footer(
    tmp_path, records, header, footer, compression
):
    data = b"H" * header + b"".join(records) + b"F" * footer
    file = file_of(
        tmp_path, data, compression, record_bytes=3, header_bytes=header, footer_bytes=footer
    )
    assert records_of(file) == records
    assert file.rows == (None if compression else len(records))


@pytest.mark.parametrize("compression", PACK)
def test_positions_are_found_again(tmp_path, compression):
    files = [
        file_of(tmp_path, data, compression, str(place), record_bytes=2, header_bytes=1)
        for place, data in enumerate([b"Haabbcc", b"H", b"H0011"])
    ]
    found = assert_resumes(lambda: operator(*files))
    assert [row[0][2] for row in found] == [b"aa", b"bb", b"cc", b"00", b"11"]


def test_plain_files_are_addressed_and_compressed_ones_are_not(tmp_path):
    plain = file_of(tmp_path, b"aabb", record_bytes=2)
    packed = file_of(tmp_path, b"aabb", "GZIP", "packed", record_bytes=2)
    assert type(operator(plain, plain)) is Walk
    assert type(operator(plain, packed)) is ReadFiles
    assert type(plain.open()) is MappedRecords
    assert type(packed.open()) is StreamedRecords
    rows = plain.open().fetch(np.array([1, 0, 1])).columns[0]
    assert rows.tolist() == [b"bb", b"aa", b"bb"]


def test_trailing_zeros_are_part_of_a_record(tmp_path):
    assert records_of(file_of(tmp_path, b"a\0\0\0", record_bytes=2)) == [b"a\0", b"\0\0"]


def test_a_plain_file_of_a_wrong_length_gives_nothing_and_the_next_follows(tmp_path):
    odd = file_of(tmp_path, b"aab", name="odd", record_bytes=2)
    good = file_of(tmp_path, b"xxyy", record_bytes=2)
    assert odd.rows is None
    assert records_of(good, odd, good) == [b"xx", b"yy", InvalidArgumentError, b"xx", b"yy"]
    with pytest.raises(
        InvalidArgumentError, match=r"odd has 3 bytes between its header \(0 bytes\)"
    ) as raised:
        odd.open()
    assert raised.value.file == odd.path


@pytest.mark.parametrize(("header", "footer"), [(5, 0), (0, 5), (3, 3), (2, 4)])
@pytest.mark.parametrize("compression", PACK)
def test_a_file_shorter_than_header_and_footer_is_an_error(tmp_path, header, footer, compression):
    sizes = {"record_bytes": 2, "header_bytes": header, "footer_bytes": footer}
    kind = DataLossError if compression else InvalidArgumentError
    assert records_of(file_of(tmp_path, b"abcd", compression, **sizes)) == [kind]


def test_a_compressed_file_of_a_wrong_length_gives_its_whole_records_first(tmp_path):
    file = file_of(tmp_path, b"HHaaabbbcFF", "GZIP", record_bytes=3, header_bytes=2, footer_bytes=2)
    assert records_of(file) == [b"aaa", b"bbb", DataLossError]


def test_a_missing_file_is_named_when_its_turn_comes(tmp_path):
    good = file_of(tmp_path, b"xx", record_bytes=2)
    missing = FixedRecordFile(str(tmp_path / "none"), record_bytes=2)
    assert records_of(good, missing, good) == [b"xx", NotFoundError, b"xx"]


def test_a_plain_file_is_not_decompressed(tmp_path):
    file = file_of(tmp_path, b"xx", record_bytes=2)
    with pytest.raises(DataLossError, match="at byte 0"):
        FixedRecordFile(file.path, "GZIP", record_bytes=2).open().read(0, 1)


def test_files_cut_otherwise_have_other_states(tmp_path):
    one = file_of(tmp_path, b"aabb", record_bytes=2)
    other = file_of(tmp_path, b"aabb", record_bytes=1)
    assert one.fingerprint != other.fingerprint
    assert one.extent == (0, 4)
    assert FixedRecordFile(one.path, "", 1, 1, 2).extent == (1, 2)
