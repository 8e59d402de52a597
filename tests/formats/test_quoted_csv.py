"""CSV fields in quotes that pyarrow reads are those that evenfeed's own parser reads."""

import numpy as np
import pytest
from tests.formats.test_arrow_text import assert_alike

import evenfeed as tf
from evenfeed.formats.csv_fields import has_whole_quotes
from evenfeed.formats.tables import arrow_text

# Two fields each.
RECORDS = [
    *(
        "1,a",
        '"2",b',
        '3,"c"',
        '"4","d,e"',
        '5,""',
        '"",f',
        ",",
        '" 6 ",g',
        '7,"h;i"',
        "8,NA",
        '9,"NA"',
    ),
    *('"NA",j', '10,"k""l"', '11,"m\nn"', '12,o"p', '13,"q"r', '14,"s', '"15, t', '"16"'),
    *('17,"u""', '18,""v""', '"19"\r,w', '20,"x\r\ny"', "21,'z'", '22, "a"', '"23",b,"c"'),
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("default", [tf.float64, [5]])
def test_records_with_quotes_are_read_alike(tmp_path, monkeypatch, end, default):
    for place, record in enumerate(RECORDS):
        lines = ["h,i", '1,"x"', record, '"2",y', record]
        (tmp_path / f"{place}.csv").write_bytes(end.join([*lines, ""]).encode())

    def dataset():
        names = [str(tmp_path / f"{place}.csv") for place in range(len(RECORDS))]
        return tf.data.experimental.CsvDataset(
            names, [default, [b"none"]], header=True, na_value="NA"
        )

    assert_alike(dataset, monkeypatch)


@pytest.mark.parametrize("seed", range(40))
def test_any_quotes_are_read_alike(tmp_path, monkeypatch, seed):
    chance = np.random.default_rng(seed)
    pieces = ['"', ",", "\n", "a", "1", '","', '"\n"', '""', '1,"a"\n', '"2",b\n', ',"c"\n']
    text = "".join(chance.choice(pieces, 40))
    (tmp_path / "a.csv").write_text(text)
    kinds = [[b"none"], tf.string]
    options = [{}, {"header": True}, {"field_delim": "a"}][seed % 3]

    def dataset():
        return tf.data.experimental.CsvDataset(str(tmp_path / "a.csv"), kinds, **options)

    assert_alike(dataset, monkeypatch)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a,b\n", True),
        (b'"a",b\n"c","d,e"\n', True),
        (b'"a""b",c\n', False),
        (b'a"b",c\n', False),
        (b'"a,b\nc",d\n', False),
        (b'"a\n', False),
        (b'a,b"\n"c,d\n', False),
    ],
)
def test_quotes_around_whole_fields_are_told_from_others(text, expected):
    assert has_whole_quotes(text, b",") == expected


def test_pyarrow_reads_fields_in_quotes(tmp_path, monkeypatch):
    rows = 20_000
    (tmp_path / "a.csv").write_text("".join(f'"{row}","name, {row}"\n' for row in range(rows)))
    monkeypatch.setattr(
        "evenfeed.formats.csv_files.CsvReader._fields",
        lambda reader: pytest.fail("a chunk was cut by Python"),
    )
    assert arrow_text.is_worth_it(1 << 20)
    monkeypatch.setattr(arrow_text, "_SHORTEST", 1)
    records = tf.data.experimental.CsvDataset(str(tmp_path / "a.csv"), [tf.int64, tf.string])
    numbers, names = next(iter(records.batch(rows)))
    assert numbers.tolist() == list(range(rows))
    assert names[7] == b"name, 7"
