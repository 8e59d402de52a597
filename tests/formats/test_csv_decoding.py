import numpy as np
import pytest

import evenfeed as tf

decode = tf.io.decode_csv


def values(columns):
    return [column.tolist() for column in columns]


# The results of TensorFlow 2.21.
@pytest.mark.parametrize(
    ("records", "defaults", "options", "expected"),
    [
        ("1,a,2.5", [0, "", 0.0], {}, [1, b"a", 2.5]),
        (["1,a", "2,b"], [[0], [""]], {}, [[1, 2], [b"a", b"b"]]),
        ([["1,a", "2,b"]], [[0], [""]], {}, [[[1, 2]], [[b"a", b"b"]]]),
        ("1,", [0, "x"], {}, [1, b"x"]),
        ('"a,b",1', ["", 0], {}, [b"a,b", 1]),
        ('"a""b",1', ["", 0], {}, [b'a"b', 1]),
        ('"a\nb",1', ["", 0], {}, [b"a\nb", 1]),
        ('"a', [""], {"use_quote_delim": False}, [b'"a']),
        ("a|1", ["", 0], {"field_delim": "|"}, [b"a", 1]),
        ("NA,1", [5, 0], {"na_value": "NA"}, [5, 1]),
        ("1,2,3", [0], {"select_cols": [1]}, [2]),
        (["1,2,3", "4,5"], [0, 0], {"select_cols": [0, 1]}, [[1, 4], [2, 5]]),
        (" 1", [0], {}, [1]),
        ("float32", ["int32"], {}, [b"float32"]),
        ("7", [np.zeros(0, np.int64)], {}, [7]),
        ([], [0, ""], {}, [[], []]),
    ],
)
def test_records_become_columns(records, defaults, options, expected):
    records = np.zeros(0, object) if isinstance(records, list) and not records else records
    assert values(decode(records, defaults, **options)) == expected


@pytest.mark.parametrize(
    ("records", "defaults", "words"),
    [
        (["1,2", "1,2,3"], [0, 0], "Expect 2 fields but have 3 in record 1"),
        (["1,2", "1"], [0, 0], "Expect 2 fields but have 1 in record 1"),
        ("", ["x"], "Expect 1 fields but have 0 in record 0"),
        (["1", "x"], [0], "Record 1: field 0 is b'x', which is not a valid int32"),
        (",1", [tf.int32, 0], "Record 0: field 0 is empty and has no default"),
        (["a", '"a'], [""], "Record 1 is b'\"a': a quote is not closed"),
        (["a", "a\nb"], ["x"], "Record 1 is b'a\\nb'"),
        ("1", [[1, 2]], "must have a single default"),
        ("1", [np.uint8(1)], "cannot have dtype uint8"),
    ],
)
def test_a_bad_record_is_named(records, defaults, words):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        decode(records, defaults)
    assert words in str(caught.value)


@pytest.mark.parametrize("select", [[2, 1], [-1, 0], [0, 0]])
def test_fields_are_chosen_in_order(select):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="select_cols"):
        decode("1,2,3", [0, 0], select_cols=select)


def test_numbers_are_no_records():
    with pytest.raises(TypeError, match="must be strings"):
        decode(3, [0])


def test_lines_of_a_dataset_are_read_many_at_a_time():
    lines = tf.data.Dataset.from_tensor_slices([f"{number},{number}.5,x" for number in range(100)])
    rows = lines.map(lambda line: tuple(decode(line, [0, 0.0, ""])))
    assert rows.element_spec == tuple(
        tf.TensorSpec([], dtype) for dtype in (tf.int32, tf.float32, tf.string)
    )
    got = list(rows.as_numpy_iterator())
    assert got[42] == (42, 42.5, b"x")
    assert len(got) == 100
    whole = lines.batch(8).map(lambda batch: decode(batch, [0, 0.0, ""])[0])
    assert next(iter(whole)).tolist() == list(range(8))
