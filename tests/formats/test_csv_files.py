import gzip

import pytest
from tests.resuming import assert_resumes

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.csv_fields import CsvColumn
from evenfeed.formats.csv_files import CsvFile, CsvLayout, CsvReader
from evenfeed.runtime.operators.files import ReadFiles

TEXT, NUMBER = CsvColumn("field 0", dtypes.string), CsvColumn("field 1", dtypes.int64, b"7")
LAYOUT = CsvLayout((TEXT, NUMBER), (0, 1), header=True)
GOOD = b"name,age\n" + b"".join(b'"a ""%d""\n",%d\n' % (n, n) for n in range(9))
BAD = b'h,h\na,1\nb\nc,x\n"d"d,3\n"e",4\nf,\n"g'


def written(folder, data, compression=""):
    path = folder / "table.csv"
    path.write_bytes(gzip.compress(data) if compression else data)
    return CsvFile(str(path), compression, LAYOUT)


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("data", [GOOD, BAD, b"name,age\n", b""])
def test_reading_resumes_anywhere_also_behind_errors(tmp_path, data, compression):
    file = written(tmp_path, data, compression)
    assert_resumes(lambda: ReadFiles([file, file]))


@pytest.mark.parametrize("first_read", [1, 2, 3, 7, 50])
def test_where_reads_end_does_not_matter(tmp_path, first_read):
    reader = CsvReader(written(tmp_path, GOOD), first_read)
    rows = []
    while (block := reader.read(len(rows), 4)) is not None:
        rows += zip(*(column.tolist() for column in block.columns), strict=True)
    assert rows == [(b'a "%d"\n' % n, n) for n in range(9)]
    assert reader.read(3, 1).columns[1].tolist() == [3]
    reader.close()


def test_what_is_wrong_is_said_with_the_line(tmp_path):
    reader, said, rows = CsvReader(written(tmp_path, BAD), 5), [], 0
    while True:
        try:
            if reader.read(rows, 1) is None:
                break
        except InvalidArgumentError as error:
            said.append(error.message.partition("table.csv, ")[2])
            assert reader.goes_on
        rows += 1
    reader.close()
    assert said == [
        "line 3: expected 2 fields, but found 1.",
        "line 4: field 1 is b'x', which is not a valid int64.",
        'line 5: a quote inside a quoted field must be doubled, as "".',
        "line 8: a quote is not closed before the end of the file.",
    ]


def test_files_of_other_layouts_are_told_apart(tmp_path):
    file = written(tmp_path, GOOD)
    other = CsvFile(file.path, "", CsvLayout((TEXT, NUMBER), (1, 0), header=True))
    assert file.fingerprint != other.fingerprint
    assert file.identity != other.identity
    assert (file.rows, file.extent) == (None, (0, len(GOOD)))


def test_fields_that_are_selected_come_in_the_order_of_the_columns(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"0,1,2,3\n4,5,6,7\n")
    columns = tuple(CsvColumn(name, dtypes.int32) for name in "ab")
    for layout in (CsvLayout(columns, (1, 0), (1, 3)), CsvLayout(columns, (1, 0), (), (0, 2))):
        block = CsvFile(str(path), "", layout).open().read(0, 9)
        assert [column.tolist() for column in block.columns] == [[3, 7], [1, 5]]
