"""pyarrow parses CSV and JSON text only if it finds what evenfeed's own parsers find."""

import json
from itertools import product

import numpy as np
import pytest
from tests.plans.comparing import assert_all_equal

import evenfeed as tf
from evenfeed.formats import json_lines
from evenfeed.formats.csv_fields import CsvColumn
from evenfeed.formats.csv_files import CsvLayout, table_of
from evenfeed.formats.tables import arrow_text

NUMBERS = [
    *["1", "-1", "+1", "007", " 7", "7 ", "\t7", "1_000", "1,5", "", " ", "-", ".5", "5.", "."],
    *["1e3", "1E-3", "1e400", "-1e400", "1e-400", "nan", "-nan", "NaN", "inf", "-Infinity", "1.0"],
    *["nan(1)", "NaN()", "-NAN(abc)", "nan(", "infinity(1)", "-0", "-0.0", "1.17549435e-38"],
    *["0x10", "0X1p3", "1f", "true", "None", "NA", "2147483648", "9223372036854775808", "\uff11"],
    *[
        "0.1",
        "16777217",
        "1.00000017881393432617187499",
        "4.9e-324",
        "123456789012345678901234567890",
    ],
]
LONG = "-" + "0" * 5000 + "7"  # Python parses no integers of more than 4300 digits
# Numbers are made of these: each alone, and each two in a row.
PARTS = [
    *["0", "9", "00", "+", "-", ".", "e5", "E-400", "e400", "nan", "NaN", "()", "(1)", "(abc)"],
    *["inf", "INFINITY", "0x1", "p3", " ", "\t", "\x0b", "\x1c", "\xa0", "_", "f", "true", "NULL"],
    *["\x00", "\uff11", "#N/A", "2147483648", "9223372036854775807", "4.9e-324", "2.4e-324"],
    *["1.7976931348623159e308", "3.4028236e38", "1.00000017881393432617187499"],
]
TEXTS = ["a", "", " a ", "0x10", 'a "b"', '"a"', '"a,b"', "é", "\x00", "NA", "a\rb"]


def _rows(dataset):
    """Return all rows, and the first line of each error."""
    found, iterator = [], iter(dataset)
    while len(found) < 300:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except tf.errors.OpError as error:
            found.append(f"{error.file}, byte {error.offset}: {str(error).splitlines()[0]}")
    raise AssertionError("the rows do not end")


def assert_alike(dataset, monkeypatch):
    """Check that pyarrow changes nothing, and return the rows."""
    with monkeypatch.context() as patched:
        patched.setattr(arrow_text, "_SHORTEST", 0)
        patched.setattr(arrow_text, "_BLOCKS", 1)  # a block must hold a whole line
        found = _rows(dataset())
    with monkeypatch.context() as patched:
        patched.setattr(arrow_text, "_SHORTEST", 1 << 60)
        patched.setattr(arrow_text, "_SHORTEST_ONCE_IMPORTED", 1 << 60)
        expected = _rows(dataset())
    assert [row for row in found if isinstance(row, str)] == [
        row for row in expected if isinstance(row, str)
    ]
    assert repr(found) == repr(expected)  # with the sign of a zero
    assert [isinstance(row, str) for row in found] == [isinstance(row, str) for row in expected]
    assert_all_equal(
        *([row for row in rows if not isinstance(row, str)] for rows in (found, expected))
    )
    return found


@pytest.mark.parametrize("kind", [tf.int32, tf.int64, tf.float32, tf.float64])
@pytest.mark.parametrize("is_required", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_number_is_read_alike(tmp_path, monkeypatch, kind, is_required, end):
    default = kind if is_required else np.array([3], kind)
    for place, number in enumerate(NUMBERS):
        path = tmp_path / f"{place}.csv"
        path.write_bytes(f"1,{number},x{end}2,5,y{end}".encode())

    def dataset():
        names = [str(tmp_path / f"{place}.csv") for place in range(len(NUMBERS))]
        return tf.data.experimental.CsvDataset(names, [tf.int32, default, tf.string])

    assert len(assert_alike(dataset, monkeypatch)) == 2 * len(NUMBERS)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32, np.float64])
def test_pyarrow_finds_the_same_bits_or_nothing(monkeypatch, kind):
    monkeypatch.setattr(arrow_text, "_BLOCKS", 1)
    column, found = CsvColumn("x", np.dtype(kind)), 0
    for number in [*PARTS, *map("".join, product(PARTS, repeat=2)), LONG]:
        text = number.encode()
        table = table_of(text + b",\n", CsvLayout((column,), (0,)), 2, [0])
        if table is not None:
            values, wrong = column.values([text], b"")
            assert not wrong, number
            assert np.asarray(table[0]).tobytes() == values.tobytes(), number
            found += 1
    assert found > 20


@pytest.mark.parametrize("default", [tf.string, [""], ["none"]])
@pytest.mark.parametrize("quoted", [True, False])
def test_text_is_read_alike(tmp_path, monkeypatch, default, quoted):
    for place, text in enumerate(TEXTS):
        (tmp_path / f"{place}.csv").write_bytes(f"h,i\n{text},1\nb,2\n".encode())
    (tmp_path / "mark.csv").write_bytes(b"\xef\xbb\xbfh,i\n\xff,1\n")

    def dataset():
        names = [str(tmp_path / f"{place}.csv") for place in [*range(len(TEXTS)), "mark"]]
        return tf.data.experimental.CsvDataset(
            names, [default, tf.int64], header=True, use_quote_delim=quoted, na_value="NA"
        )

    assert_alike(dataset, monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n",
        "1,2\n\n3,4\n",
        "1,2\n3\n4,5,6\n7,8",
        "\n\n",
        "1,2\r3,4\r",
        "1,2\n3,",
        "\ufeff1,2\n",
        "a,b\r1,2\n3,4\n",
        "a,b\r\n1,2\r3,4\n",
        "a,b\r\r\n1,2\n",
    ],
)
def test_records_are_cut_alike(tmp_path, monkeypatch, text):
    (tmp_path / "a.csv").write_bytes(text.encode())
    names = [str(tmp_path / "a.csv")]
    kinds = [tf.float32, tf.string]
    for options in ({}, {"header": True}, {"select_cols": [0, 1]}, {"exclude_cols": [2]}):
        assert_alike(
            lambda o=options: tf.data.experimental.CsvDataset(names, kinds, **o), monkeypatch
        )


def test_pyarrow_reads_long_csv_files(tmp_path, monkeypatch):
    rows = 20_000
    lines = [f"{row},{row / 7:.5f},name {row % 99},{row}\n" for row in range(rows)]
    (tmp_path / "a.csv").write_text("a,b,c,d\n" + "".join(lines))
    parsed = []
    csv_columns = arrow_text.csv_columns
    monkeypatch.setattr(
        arrow_text, "csv_columns", lambda *a, **k: parsed.append(1) or csv_columns(*a, **k)
    )

    def dataset():
        return tf.data.experimental.CsvDataset(
            str(tmp_path / "a.csv"),
            [tf.int64, tf.float32, tf.string],
            header=True,
            select_cols=[0, 1, 2],
        )

    batch = next(iter(dataset().batch(rows)))
    assert parsed
    assert batch[0].tolist() == list(range(rows))
    assert batch[1].tolist() == [np.float32(f"{row / 7:.5f}") for row in range(rows)]
    assert batch[2].tolist() == [b"name %d" % (row % 99) for row in range(rows)]
    iterator = iter(dataset().skip(15_000))
    next(iterator)
    again = iter(dataset().skip(15_000))
    again.set_state(iterator.get_state())
    assert int(next(again)[0]) == 15_001


VALUES = [
    *[
        "1",
        "-1",
        "1.0",
        "1e2",
        "1e400",
        "true",
        "null",
        '"text"',
        '"\\u00e9"',
        '"\\ud800"',
        '"\\u0000"',
    ],
    *[
        "Inf",
        "-Inf",
        "-NaN",
        "Infinity",
        "-0",
        "-0 ",
        "-0.0",
        "-0e1",
        "2" + "0" * 308,
        "1" * 5000,
        "[1]",
        "[]",
        "{}",
        "NaN",
        "01",
        "9223372036854775808",
        "16777217",
        '"a\tb"',
        '"\x7f"',
        "300",
    ],
]
KINDS = [
    tf.int64,
    tf.uint8,
    tf.uint64,
    tf.float32,
    tf.float64,
    tf.float16,
    tf.bool,
    tf.string,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [[], [None], [2]])
def test_a_json_value_is_read_alike(tmp_path, monkeypatch, kind, shape):
    good = {"bool": "true", "string": '"é"'}.get(tf.as_dtype(kind).name, "1")
    names = []
    for place, value in enumerate(VALUES):
        lines = [good, value, good] if not shape else [f"[{good}, {value}]", f"[{good}]", "[]"]
        text = "\n".join(f'{{"x": {line}, "more": [{{"x": 1}}]}}' for line in lines)
        names.append(str(tmp_path / f"{place}.jsonl"))
        (tmp_path / f"{place}.jsonl").write_text(text)
    spec = {"x": tf.TensorSpec(shape, kind)}
    assert_alike(lambda: tf.data.Dataset.from_json_lines(names, spec), monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        b'{"x": 1}{"x": 2}\n{"x":\n3}\n',
        b'{"x": 1}\n\n  \n{"x": 2}',
        b' {"x": 1}\n{"x": 2} \n',
        b'{"x": 1, "x": 2}\n{"x": 3}',
        b'{"x": 1,}\n{"x": 3}',
        b'{"x": 1} {"x": 2}\n{"x": 3}',
        b'{"y": 1}\n{"x": 3}',
        b'[1]\n{"x": 3}',
        b'{"x": 1, "y": "\xff"}\n{"x": 3}',
        b'{"x": 1, "y": ' + b"[" * 5000 + b"]" * 5000 + b'}\n{"x": 3}',
        b'{"x": 1, "y": "a\\"}{"}\n{"x": 3}',
        b'{"x": 1}\r\n{"x": 2}\r\n',
        b'{"x": 1}\r{"x": 2}\n{"x": 3}\n',
        b'{"x": 1,\r"y": 2}\r\r\n{"x": 3}\n',
        b'{"x": 1, "y": Inf}\n{"x": 3, "y": [-NaN ]}\n',
        b'{"x": 1, "y": ' + b"1" * 5000 + b'}\n{"x": 3}',
        b'{"x": 1, "y": {"x": 5}}\n{"x": 3, "y": 1}',
        b'{"x": 1}\n{"x": 2}\n\n{"y": 3}\n \n{"x": 4}\n',
        b'\n\n{"x": 1}\n\n{"x": 2}\n\n',
        b"\n \n",
        b'{"x": 1, "y": ' + b"[" * 490 + b"]" * 490 + b'}\n{"x": 3}\n{"x": ' + b"[" * 501 + b"}",
    ],
)
def test_json_lines_are_cut_alike(tmp_path, monkeypatch, text):
    (tmp_path / "a.jsonl").write_bytes(text)
    spec = {"x": tf.TensorSpec([], tf.int64)}
    assert_alike(lambda: tf.data.Dataset.from_json_lines(tmp_path / "a.jsonl", spec), monkeypatch)


def test_pyarrow_reads_long_json_files(tmp_path, monkeypatch):
    rows = [
        {"id": row, "v": [row / 3] * (row % 4), "deep": {"name": f"é {row}", "pair": [row, 1]}}
        for row in range(6000)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    parsed = []
    json_columns = arrow_text.json_columns

    def counted(text, spec):
        found = json_columns(text, spec)
        parsed.append(found)
        return found

    monkeypatch.setattr(arrow_text, "json_columns", counted)
    found = list(tf.data.Dataset.from_json_lines(tmp_path / "a.jsonl"))
    assert parsed
    assert all(columns is not None for columns in parsed)
    for row, element in zip(rows, found, strict=True):
        assert element["v"].tolist() == row["v"]
        assert element["deep"]["pair"].tolist() == row["deep"]["pair"]
        assert element["deep"]["name"].item() == row["deep"]["name"].encode()


BAD_LINES = [
    '{"id": 1}',
    '{"id": null, "v": [1]}',
    '{"id": 5, "v": [1, null]}',
    '{"id": "text", "v": []}',
    '{"id": Inf, "v": []}',
    '{"id": 7, "v": [1]',
    "[]",
    "",
    "  ",
    '{"id": 8, "v": [-0]}',
    '{"v": [1], "id": 9} ',
]


@pytest.mark.parametrize("is_ragged", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_lines_around_bad_ones_are_read_alike(tmp_path, monkeypatch, seed, is_ragged):
    chance = np.random.default_rng(seed)
    count = int(chance.integers(1, 200))
    lines = [
        json.dumps({"id": row, "v": [row] * (row % 4 if is_ragged else 2), "text": f"é {row}"})
        for row in range(count)
    ]
    for place in chance.integers(0, count, int(chance.integers(1, 12))):
        lines[place] = str(chance.choice(BAD_LINES))
    (tmp_path / "a.jsonl").write_text(chance.choice(["\n", "\r\n"]).join(lines))
    spec = {
        "id": tf.TensorSpec([], tf.int64),
        "v": tf.TensorSpec([None], tf.int32),
        "text": tf.TensorSpec([], tf.string),
    }
    monkeypatch.setattr(json_lines, "_PIECE_BYTES", int(chance.integers(30, 1000)))
    assert_alike(lambda: tf.data.Dataset.from_json_lines(tmp_path / "a.jsonl", spec), monkeypatch)


def test_few_lines_around_a_bad_one_are_parsed_by_python(tmp_path, monkeypatch):
    rows = [json.dumps({"id": row, "name": f"name {row}"}) for row in range(20_000)]
    rows[7000] = '{"id": null, "name": "x"}'
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    parsed, own = [], json_lines._values
    monkeypatch.setattr(
        json_lines, "_values", lambda lines, wrong: parsed.append(len(lines)) or own(lines, wrong)
    )
    spec = {"id": tf.TensorSpec([], tf.int64), "name": tf.TensorSpec([], tf.string)}
    found = tf.data.Dataset.from_json_lines(tmp_path / "a.jsonl", spec).ignore_errors()
    assert [row["id"].item() for row in found] == [row for row in range(20_000) if row != 7000]
    assert 0 < sum(parsed) < 2000
