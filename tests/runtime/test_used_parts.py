"""Columns that a map does not use are not read, and nothing else changes."""

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from tests.plans.comparing import assert_all_equal
from tests.resuming import assert_resumes

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.errors import InvalidArgumentError
from evenfeed.formats.tables import table_parts
from evenfeed.runtime.build import build
from evenfeed.runtime.run import Run, next_pass

ROWS = 40


def table(**columns):
    return pa.table(
        {
            "number": np.arange(ROWS, dtype=np.int32),
            "pair": [{"left": row, "right": b"r"} for row in range(ROWS)],
            "text": [f"text {row}" for row in range(ROWS)],
            "vector": pa.FixedSizeListArray.from_arrays(np.arange(3.0 * ROWS), 3),
            **columns,
        }
    )


WRITERS = {
    "parquet": lambda rows, path: pq.write_table(rows, path, row_group_size=8),
    "arrow": lambda rows, path: pf.write_feather(
        rows, path, chunksize=8, compression="uncompressed"
    ),
    "compressed arrow": lambda rows, path: pf.write_feather(rows, path, chunksize=8),
}


@pytest.fixture(params=WRITERS)
def kind(request):
    return request.param


@pytest.fixture
def read(kind, tmp_path):
    """Write a table, and return a dataset of its rows."""
    reader = tf.data.Dataset.from_parquet if kind == "parquet" else tf.data.Dataset.from_arrow

    def written(rows):
        path = str(tmp_path / "rows")
        WRITERS[kind](rows, path)
        return reader(path)

    return written


@pytest.fixture
def decoded(monkeypatch):
    """Return the names of the columns that are decoded."""
    names = set()

    def noted(array, name, *rest):
        names.add(name)
        return columns_of(array, name, *rest)

    columns_of = table_parts.columns_of
    monkeypatch.setattr(table_parts, "columns_of", noted)
    return names


@pytest.mark.parametrize(
    ("function", "columns"),
    [
        (lambda row: row["number"], {"number"}),
        (lambda row: row["number"] * 2, {"number"}),
        (lambda row: (row["text"], row["number"] + 1), {"number", "text"}),
        (lambda row: tf.strings.length(row["text"]), {"text"}),
        (lambda row: row["pair"]["left"], {"pair"}),
        (lambda row: row["number"] + row["vector"].shape[0], {"number"}),
        (lambda row: {"x": row["vector"] + 1}, {"vector"}),
        (lambda _: 1, set()),
    ],
)
def test_only_columns_that_a_map_uses_are_read(read, decoded, function, columns):
    rows = table()
    expected = list(read(rows).map(function, vectorize=False))
    decoded.clear()
    assert_all_equal(list(read(rows).map(function)), expected)
    assert decoded == (columns or set(rows.column_names))


def test_columns_without_a_fixed_shape_are_read(read, decoded):
    dataset = read(table(list=[[row] for row in range(ROWS)])).map(lambda row: row["number"])
    for number, value in enumerate(dataset.batch(4)):
        assert value.tolist() == list(range(4 * number, 4 * number + 4))
        if number == 0:  # the first rows show the shape
            decoded.clear()
    assert decoded == {"list", "number"}


def test_order_shards_and_resuming_stay_the_same(read):
    def rows(function):
        dataset = read(table()).shuffle(ROWS, seed=3).shard(2, 1).repeat(2)
        return dataset.map(function).map(lambda x: x + 1).batch(4)

    used = rows(lambda row: row["number"])
    whole = rows(lambda row: row["number"] + 0 * tf.cast(row["pair"]["left"], tf.int32))
    assert_all_equal(list(used), list(whole))
    plan = plan_of(used)
    assert_resumes(lambda: build(plan, Run(plan, next_pass)), 3)


def test_a_null_in_an_unused_column_is_still_an_error(read):
    texts = [None if row == 17 else "t" for row in range(ROWS)]
    dataset = read(table(text=texts)).map(lambda row: row["number"] * 2)
    with pytest.raises(InvalidArgumentError, match="row 17: column 'text' is null"):
        list(dataset)
    assert [int(x) for x in dataset.ignore_errors()] == [2 * x for x in range(ROWS) if x != 17]


def test_a_null_inside_of_an_unused_column_is_still_an_error(read):
    vectors = pa.array(
        [[1.0, None if row == 9 else 2.0] for row in range(ROWS)], pa.list_(pa.float64(), 2)
    )
    dataset = read(table(vector=vectors)).map(lambda row: row["number"])
    with pytest.raises(InvalidArgumentError, match="row 9: column 'vector' is null"):
        list(dataset)


def test_names_with_dots_are_read_as_a_whole(tmp_path):
    rows = pa.table({"a": [1, 2], "a.b": [None, 2]})
    pq.write_table(rows, tmp_path / "dots")
    with pytest.raises(InvalidArgumentError, match=r"'a\.b' is null"):
        list(tf.data.Dataset.from_parquet(str(tmp_path / "dots")).map(lambda row: row["a"]))


def test_an_error_of_the_function_shows_the_whole_row(read):
    def pick(row):
        return jnp.arange(10)[row["number"]]

    rows = table().drop_columns(["pair"])
    whole = read(rows).map(lambda row: (pick(row), row))
    used = read(rows).map(pick)
    with pytest.raises(InvalidArgumentError, match="out of range") as expected:
        list(whole)
    with pytest.raises(InvalidArgumentError, match="out of range") as found:
        list(used)
    note, same = expected.value.__notes__[0], found.value.__notes__[0]
    assert "text 10" in note
    assert same.split(" with ")[0] == note.split(" with ")[0]


def test_a_function_that_uses_other_parts_of_another_shape_gets_them(read):
    lists = [[1] if row < 20 else [1, 2] for row in range(ROWS)]

    def pick(row):
        return row["number"] if row["list"].shape[0] == 1 else row["pair"]["left"] * 100

    found = [
        int(x)
        for x in read(table(list=lists)).map(pick, output_signature=tf.TensorSpec([], tf.int64))
    ]
    assert found == [row if row < 20 else row * 100 for row in range(ROWS)]
