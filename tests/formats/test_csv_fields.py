import csv
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenfeed.formats.csv_fields import Cutter

FIELDS = st.text(st.sampled_from('ab,"\n\r '), max_size=5)
TABLES = st.lists(st.lists(FIELDS, min_size=1, max_size=3), max_size=5)
PIECES = st.lists(st.sampled_from([b",", b'"', b"\n", b"\r", b"\r\n", b"a", b'""']), max_size=25)


def rows_of(text, pieces, *, quoted=True):
    """Split a text that arrives in pieces; return its records, and whether the last is incomplete."""
    cutter, rest, rows, is_open = Cutter(b",", quoted=quoted), b"", [], False
    for number, piece in enumerate([*pieces, b""]):
        records, rest = cutter.cut(rest + piece, is_last=number == len(pieces))
        fields, wrong = cutter.unquoted(records.fields)
        stops = [0, *records.stops.tolist()]
        for start, stop in itertools.pairwise(stops):
            bad = any(start <= place < stop for place in wrong)
            rows.append(None if bad else list(fields[start:stop]))
        is_open = records.is_open
    assert not rest
    return rows, is_open


@given(TABLES, st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_python_writes_is_read(table, end):
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(table)
    text = file.getvalue().encode()
    expected = [[field.encode() for field in row] for row in table]
    assert rows_of(text, [text]) == (expected, False)


def plain(text):
    """Split a text byte by byte, as TensorFlow does: slow but simple."""
    rows, row, place = [], [], 0
    wrong = False
    while place < len(text) or row:
        field, quoted = b"", text[place : place + 1] == b'"'
        place += quoted
        while True:
            byte = text[place : place + 1]
            if quoted and not byte:
                return [*rows, None], True
            if not quoted and (byte in (b",", b"\r", b"\n") or not byte):
                break
            if quoted and byte == b'"':
                place += 1
                byte = text[place : place + 1]
                if byte in (b",", b"\r", b"\n") or not byte:
                    break
                wrong |= byte != b'"'
            wrong |= not quoted and byte == b'"'
            field += byte
            place += 1
        row.append(field)
        place += 2 if text[place : place + 2] == b"\r\n" else 1
        if byte != b",":
            rows.append(None if wrong else row)
            row, wrong = [], False
    return rows, False


@given(PIECES, st.integers(0, 30))
def test_any_bytes_are_cut_as_tensorflow_cuts_them_wherever_reads_end(pieces, at):
    text = b"".join(pieces)
    while text[at - 1 : at] == b"\r":  # no read ends there
        at += 1
    rows, is_open = rows_of(text, [text[:at], text[at:]] if text[:at] and text[at:] else [text])
    expected, expected_open = plain(text)
    if is_open:
        rows[-1] = None
    assert (rows, is_open) == (expected, expected_open)


@pytest.mark.parametrize("quoted", [True, False])
@pytest.mark.parametrize("text", [b"a,b\nc,d\n", b"a,b\r\nc,d\r\n", b"a,b\rc,d", b"a,b\nc,d"])
def test_all_ends_of_lines_are_alike(text, quoted):
    assert rows_of(text, [text], quoted=quoted) == ([[b"a", b"b"], [b"c", b"d"]], False)


def test_quotes_may_mean_nothing():
    assert rows_of(b'"a,b"\n"\n', [b'"a,b"\n"\n'], quoted=False) == (
        [[b'"a', b'b"'], [b'"']],
        False,
    )


@pytest.mark.parametrize("text", [b'"x' * 200_000, b'"' + b"a\n" * 200_000, b'a"' * 200_000])
def test_open_quotes_are_passed_over_once(text):
    records, rest = Cutter(b",", quoted=True).cut(text, is_last=False)
    assert (records.count, rest) == (0, text)
    assert Cutter(b",", quoted=True).cut(text, is_last=True)[0].count == 1


def test_records_know_their_lines():
    records, _ = Cutter(b",", quoted=True).cut(b'a,"b\nb"\n\n"c\r\nc"\rd\n', is_last=True)
    assert [records.line(number) for number in range(records.count)] == [0, 2, 3, 5]
    assert records.lines == 6
