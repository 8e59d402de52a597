import datetime
import decimal
import re
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import evenfeed as tf
from evenfeed.core.block import length_of
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError
from evenfeed.formats.tables import arrow_columns
from evenfeed.formats.tables.arrow_columns import columns_of, spec_of

S = tf.TensorSpec
DAY = datetime.date(1970, 1, 3)
TENSORS = pa.FixedShapeTensorArray.from_numpy_ndarray(
    np.arange(12, dtype=np.int32).reshape(2, 2, 3)
)
PAIRS = pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2))

KINDS = [
    (pa.array([1, 2], pa.int8()), S([], tf.int8), [1, 2]),
    (pa.array([1, 2], pa.uint64()), S([], tf.uint64), [1, 2]),
    (pa.array([0.5, 2], pa.float16()), S([], tf.float16), [0.5, 2]),
    (pa.array([0.5, 2], pa.float32()), S([], tf.float32), [0.5, 2]),
    (pa.array([0.5, 2], pa.float64()), S([], tf.float64), [0.5, 2]),
    (pa.array([True, False]), S([], tf.bool), [True, False]),
    (pa.array(["a", "ü"]), S([], tf.string), [b"a", "ü".encode()]),
    (pa.array(["a", ""], pa.large_string()), S([], tf.string), [b"a", b""]),
    (pa.array(["a", "b"], pa.string_view()), S([], tf.string), [b"a", b"b"]),
    (pa.array([b"\xff", b"\0"]), S([], tf.string), [b"\xff", b"\0"]),
    (pa.array([b"ab", b"\0\0"], pa.binary(2)), S([], tf.string), [b"ab", b"\0\0"]),
    (pa.array(["x", "x"]).dictionary_encode(), S([], tf.string), [b"x", b"x"]),
    (pa.array([7, 7]).dictionary_encode(), S([], tf.int64), [7, 7]),
    (pa.array([DAY, DAY]), S([], tf.int32), [2, 2]),
    (pa.array([3, 4], pa.timestamp("ms", "UTC")), S([], tf.int64), [3, 4]),
    (pa.array([3, 4], pa.duration("ns")), S([], tf.int64), [3, 4]),
    (pa.array([3, 4], pa.time32("s")), S([], tf.int32), [3, 4]),
    (PAIRS, S([2], tf.int16), [[1, 2], [3, 4]]),
    (pa.array([[["a"]], [["b"]]], pa.list_(pa.list_(pa.string(), 1), 1)), S([1, 1], tf.string), [[[b"a"]], [[b"b"]]]),
    (TENSORS, S([2, 3], tf.int32), np.arange(12).reshape(2, 2, 3).tolist()),
    (pa.array([[], []], pa.list_(pa.int8(), 0)), S([0], tf.int8), [[], []]),
]  # fmt: skip


def blamed(array, fills=None):
    """Return the columns of an array, and the errors of its rows."""
    errors = {}
    columns = columns_of(
        array,
        "x",
        fills or {},
        lambda rows, what: errors.update(dict.fromkeys(rows.tolist(), what)),
    )
    return columns, errors


@pytest.mark.parametrize(
    ("array", "spec", "values"), KINDS, ids=lambda x: str(getattr(x, "type", ""))[:30]
)
def test_arrays_become_columns(array, spec, values):
    assert spec_of(array.type, "x") == spec
    longer = pa.chunked_array([array, array])
    for some in (array, longer.slice(1, 2), longer):
        (column,), errors = blamed(some)
        assert not errors
        assert column.dtype == spec.dtype
        assert column.shape == (len(some), *spec.shape)
    assert column.tolist() == values + values


def test_numbers_are_not_copied():
    numbers = np.arange(1000.0)
    (column,), _ = blamed(pa.chunked_array([pa.array(numbers)]))
    assert np.shares_memory(column, numbers)
    (column,), _ = blamed(pa.FixedSizeListArray.from_arrays(pa.array(numbers), 10).slice(3))
    assert np.shares_memory(column, numbers)
    assert column[0].tolist() == list(range(30, 40))


def test_lists_of_many_lengths_stay_apart():
    array = pa.array([[9], [1, 2], [], [3]], pa.list_(pa.int8())).slice(1)
    assert spec_of(array.type, "x") == S([None], tf.int8)
    (column,), errors = blamed(array)
    assert [row.tolist() for row in column] == [[1, 2], [], [3]]
    assert not errors
    pairs = pa.array([[[1, 2]], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.int8(), 2)))
    assert [row.shape for row in blamed(pairs)[0][0]] == [(1, 2), (2, 2)]


def test_structs_are_dicts():
    array = pa.array([{"b": 1, "a": {"c": "x"}}, {"b": 2, "a": {"c": "y"}}])
    assert spec_of(array.type, "x") == {"b": S([], tf.int64), "a": {"c": S([], tf.string)}}
    columns, errors = blamed(array)
    assert [column.tolist() for column in columns] == [[b"x", b"y"], [1, 2]]
    assert not errors
    assert blamed(pa.array([{"b": 1}, None]))[1] == {1: "column 'x.b' is null"}


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, None, 3]),
        pa.array(["a", None, "c"]),
        pa.array([True, None, False]),
        pa.array([b"ab", None, b"cd"], pa.binary(2)),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([DAY, None, DAY]),
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
        pa.array([[1, 2], [None, 2], [3, 4]], pa.list_(pa.int8(), 2)),
        pa.array([[1, 2], None, [3]], pa.list_(pa.int8())),
        pa.array([[1, 2], [1, None], [3]], pa.list_(pa.int8())),
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int8(), [2, 1]),
            pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
        ),
    ],
    ids=lambda array: str(array.type)[:30],
)
def test_nulls_are_blamed_on_their_rows(array):
    (column,), errors = blamed(array)
    assert errors == {1: "column 'x' is null"}
    assert length_of(column) == 3
    (kept,), _ = blamed(array.filter(pa.array([True, False, True])))
    assert np.array_equal(column[0], kept[0])
    assert np.array_equal(column[2], kept[1])


@pytest.mark.parametrize(
    ("array", "fill", "values"),
    [
        (pa.array([1, None]), -1, [1, -1]),
        (pa.array([0.5, None]), 2, [0.5, 2]),
        (pa.array(["a", None]), "ü", [b"a", "ü".encode()]),
        (pa.array(["a", None]), b"b", [b"a", b"b"]),
        (pa.array([True, None]), True, [True, True]),
    ],
)
def test_nulls_are_filled(array, fill, values):
    (column,), errors = blamed(array, {"x": fill})
    assert (column.tolist(), errors) == (values, {})


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal128(5, 2),
        pa.null(),
        pa.map_(pa.string(), pa.int8()),
        pa.list_(pa.struct({"a": pa.int8()})),
        pa.list_(pa.list_(pa.int8())),
        pa.list_(pa.list_(pa.int8()), 2),
        pa.month_day_nano_interval(),
        pa.fixed_shape_tensor(pa.int8(), [2, 3], permutation=[1, 0]),
    ],
    ids=str,
)
def test_what_no_tensor_holds_is_refused(kind):
    with pytest.raises(InvalidArgumentError, match=re.escape("Column 'x' has type ")):
        spec_of(kind, "x")


def test_decimals_say_how_to_leave_them_out():
    with pytest.raises(InvalidArgumentError, match=r"leave it out with columns=\[\.\.\.\]"):
        spec_of(pa.array([decimal.Decimal("1.5")]).type, "x")


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    arrow_columns.arrow.cache_clear()
    monkeypatch.setattr(arrow_columns, "importlib", SimpleNamespace(import_module=missing))
    with pytest.raises(UnimplementedError, match=r"pip install 'evenfeed\[parquet\]'"):
        tf.data.Dataset.from_parquet("x.parquet")
