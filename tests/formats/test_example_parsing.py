import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.example import example_batches
from evenfeed.formats.example.example_layouts import KnownLayouts, Layout

DATA = Path(__file__).parent / "data"
T = tf.train
FIXED, VARYING, SEQUENCED = (
    tf.io.FixedLenFeature,
    tf.io.VarLenFeature,
    tf.io.FixedLenSequenceFeature,
)


def feature(values):
    match values:
        case None:
            return T.Feature()
        case [bytes(), *_]:
            return T.Feature(bytes_list=T.BytesList(value=values))
        case [float(), *_]:
            return T.Feature(float_list=T.FloatList(value=values))
        case _:
            return T.Feature(int64_list=T.Int64List(value=values))


def example(**features):
    made = {name: feature(values) for name, values in features.items()}
    return T.Example(features=T.Features(feature=made)).SerializeToString()


def plain(found):
    return {key: value.tolist() for key, value in found.items()}


WANTED = {"n": FIXED([3], tf.int64), "x": FIXED([2], tf.float32), "s": FIXED([], tf.string)}


def test_examples_that_tensorflow_wrote():
    records = tf.data.TFRecordDataset(DATA / "plain.tfrecord").skip(1)
    found = [
        plain(parsed) for parsed in records.map(lambda s: tf.io.parse_single_example(s, WANTED))
    ]
    assert found == [{"n": [i, -i, 1 << 40], "s": b"r%d" % i, "x": [i / 2, -1.0]} for i in range(4)]


def test_one_example():
    found = tf.io.parse_single_example(example(n=[1, -2, 3], x=[0.5, 1.5], s=[b"\xff"]), WANTED)
    assert [(k, str(v.dtype), v.shape) for k, v in found.items()] == [
        ("n", "int64", (3,)),
        ("s", "object", ()),
        ("x", "float32", (2,)),
    ]
    assert plain(found) == {"n": [1, -2, 3], "s": b"\xff", "x": [0.5, 1.5]}


@pytest.mark.parametrize("count", [0, 1, 3, 20])
def test_many_examples(count):
    records = np.empty(count, object)
    records[:] = [example(n=[i] * 4, s=[b"a" * (i % 3)]) for i in range(count)]
    wanted = {"n": FIXED([2, 2], tf.int64), "s": FIXED([], tf.string), "z": FIXED([], tf.int64, 9)}
    found = tf.io.parse_example(records, wanted)
    assert {k: v.shape for k, v in found.items()} == {
        "n": (count, 2, 2),
        "s": (count,),
        "z": (count,),
    }
    assert found["n"][:, 1, 1].tolist() == list(range(count))
    assert found["s"].tolist() == [b"a" * (i % 3) for i in range(count)]
    assert found["z"].tolist() == [9] * count


def test_parse_example_takes_one_too():
    assert int(tf.io.parse_example(example(n=[4]), {"n": FIXED([], tf.int64)})["n"]) == 4


# A record, the requested feature, and the error text.
BAD = {
    "missing": (
        example(m=[1]),
        FIXED([], tf.int64),
        "Feature 'n' (int64) is required, but record 0 does not have it.",
    ),
    "no kind": (example(n=None), FIXED([], tf.int64), "Feature 'n' (int64) is required…"),
    "type": (
        example(n=[1]),
        FIXED([], tf.float32),
        "Feature 'n' of record 0 has dtype int64, but float32 was requested. Data types don't match.",
    ),
    "length": (
        example(n=[1, 2]),
        FIXED([3], tf.int64),
        "Feature 'n' of record 0 has 2 values, but shape (3,) has 3.",
    ),
    "no values": (
        example(n=[]),
        FIXED([], tf.int64, default_value=7),
        "Feature 'n' of record 0 has 0 values, but shape () has 1.",
    ),
    "no example": (
        b"abc",
        FIXED([], tf.int64, default_value=7),
        "Record 0 (3 bytes) is not a valid Example…",
    ),
    "type of many": (
        example(n=[1.0]),
        VARYING(tf.int64),
        "Feature 'n' of record 0 has dtype float32…",
    ),
    "no multiple": (
        example(n=[1, 2, 3]),
        SEQUENCED([2], tf.int64, True),
        "Feature 'n' of record 0 has 3 values, which is not a multiple of the 2 values of shape (2,).",
    ),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_an_example_that_is_not_as_wanted(case):
    record, wanted, what = case
    with pytest.raises(InvalidArgumentError) as caught:
        tf.io.parse_single_example(record, {"n": wanted})
    said = caught.value.message
    assert said.startswith(what[:-1]) if what.endswith("…") else said == what
    assert "fix:" in str(caught.value)


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_the_record_that_is_wrong_is_named(case):
    record, wanted, _ = case
    good = example(n=[1, 2, 3, 4, 5, 6][: 6 if isinstance(wanted, SEQUENCED) else 3])
    if isinstance(wanted, FIXED):
        good = example(n=[1.0] if wanted.dtype == tf.float32 else [1] * int(np.prod(wanted.shape)))
    records = [good] * 11 + [record] + [good] * 5
    with pytest.raises(InvalidArgumentError, match=r"[Rr]ecord 11\b"):
        tf.io.parse_example(records, {"n": wanted})


def test_a_feature_without_a_kind_is_missing():
    wanted = {"n": FIXED([], tf.int64, default_value=7)}
    assert tf.io.parse_example([example(n=None)] * 9, wanted)["n"].tolist() == [7] * 9


def field(tag, payload):
    return bytes([tag, len(payload)]) + payload


def raw(*features):
    """Return an example with features named x, given as bytes."""
    entries = [field(0x0A, field(0x0A, b"x") + field(0x12, inner)) for inner in features]
    return field(0x0A, b"".join(entries))


# Other encodings of the same example, with TensorFlow's results, probed once.
ODD = {
    "unpacked numbers": (raw(field(0x1A, b"\x08\x05\x08\x06")), [2], tf.int64, [5, 6]),
    "unpacked floats": (raw(field(0x12, b"\x0d" + struct.pack("<f", 1.5))), [], tf.float32, 1.5),
    "twice": (raw(field(0x1A, b"\x0a\x01\x05"), field(0x1A, b"\x0a\x01\x06")), [], tf.int64, 6),
    "two messages": (
        raw(field(0x1A, b"\x0a\x01\x05")) + raw(field(0x1A, b"\x0a\x01\x06")),
        [],
        tf.int64,
        6,
    ),
    "unknown field": (raw(field(0x1A, b"\x0a\x01\x05")) + b"\x78\x01", [], tf.int64, 5),
    "long number": (raw(field(0x1A, b"\x0a\x03\x85\x80\x00")), [], tf.int64, 5),
}


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("case", ODD.values(), ids=ODD.keys())
def test_other_ways_to_write_an_example(case, count):
    record, shape, dtype, value = case
    found = tf.io.parse_example([record] * count, {"x": FIXED(shape, dtype)})["x"]
    assert found.tolist() == [value] * count


NUMBERS = st.one_of(st.integers(-3, 300), st.integers(-(2**63), 2**63 - 1))
MADE = st.lists(
    st.tuples(
        st.lists(NUMBERS, min_size=2, max_size=2),
        st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=1),
        st.one_of(st.none(), st.lists(st.binary(max_size=3), min_size=1, max_size=2)),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(few=MADE, picks=st.lists(st.integers(0, 7), min_size=1, max_size=40), defaults=st.booleans())
def test_examples_at_once_are_those_one_by_one(few, picks, defaults):
    made = [example(n=n, x=x, **({} if s is None else {"s": s})) for n, x, s in few]
    records = [made[pick % len(made)] for pick in picks]
    wanted = {
        "n": FIXED([2], tf.int64),
        "x": FIXED([], tf.float32),
        "s": FIXED([], tf.string, b"none" if defaults else None),
    }

    def outcome():
        try:
            return plain(tf.io.parse_example(records, wanted))
        except InvalidArgumentError as error:
            return error.message

    at_once = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example_batches, "_FEWEST", 1 << 40)
        assert outcome() == at_once


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_examples_are_values_or_an_error(data):
    good = bytearray(example(n=[1, 300], x=[0.5], s=[b"abc"]))
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    wanted = {
        "n": FIXED([2], tf.int64, [0, 0]),
        "x": FIXED([], tf.float32, 0.0),
        "s": FIXED([], tf.string, ""),
    }
    outcomes = []
    for count in (1, 9):  # one by one, and at once
        try:
            found = tf.io.parse_example([bytes(good)] * count, wanted)
            outcomes.append(
                {
                    key: value[-1].tobytes() if key != "s" else value[-1]
                    for key, value in found.items()
                }
            )
        except InvalidArgumentError as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


def test_values_of_any_number():
    records = [example(v=[1, 2, 3]), example(v=[4]), example()]
    found = tf.io.parse_example(records, {"v": VARYING(tf.int64)})["v"]
    assert found.indices.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0]]
    assert found.values.tolist() == [1, 2, 3, 4]
    assert found.dense_shape.tolist() == [3, 3]
    assert tf.sparse.to_dense(found).tolist() == [[1, 2, 3], [4, 0, 0], [0, 0, 0]]
    one = tf.io.parse_single_example(records[1], {"v": VARYING(tf.int64)})["v"]
    assert (one.indices.tolist(), one.dense_shape.tolist()) == ([[0]], [1])
    none = tf.io.parse_single_example(b"", {"v": VARYING(tf.string)})["v"]
    assert tf.sparse.to_dense(none).shape == (0,)


def test_arrays_of_any_number():
    records = [example(v=[1, 2, 3, 4]), example()]
    found = tf.io.parse_example(records, {"v": SEQUENCED([2], tf.int64, True, 5)})["v"]
    assert found.tolist() == [[[1, 2], [3, 4]], [[5, 5], [5, 5]]]
    text = tf.io.parse_example([example(v=[b"a"]), b""], {"v": SEQUENCED([], tf.string, True)})["v"]
    assert text.tolist() == [[b"a"], [b""]]
    with pytest.raises(ValueError, match="requires allow_missing to be True"):
        tf.io.parse_example(records, {"v": SEQUENCED([2], tf.int64)})


def test_wrong_features_are_refused():
    parse = tf.io.parse_single_example
    for features, what in [
        ({}, "cannot be empty"),
        (None, "cannot be None"),
        ({"x": 3}, "Unsupported int 3"),
    ]:
        with pytest.raises(ValueError, match=what):
            parse(b"", features)
    with pytest.raises(ValueError, match="Missing shape for feature 'x'"):
        parse(b"", {"x": FIXED(None, tf.int64)})
    with pytest.raises(ValueError, match="consider FixedLenSequenceFeature"):
        parse(b"", {"x": FIXED([None], tf.int64)})
    with error_saying(
        InvalidArgumentError,
        "Feature 'x' cannot have dtype int32: examples hold only float32, int64 and string.",
        fix="pass one of these, then tf.cast the result.",
    ):
        parse(b"", {"x": FIXED([], tf.int32)})
    with pytest.raises(InvalidArgumentError, match="has 3 values, but needs 2"):
        parse(b"", {"x": FIXED([2], tf.int64, [1, 2, 3])})
    with pytest.raises(ValueError, match="serialized must be a scalar"):
        parse([b""], {"x": FIXED([], tf.int64, 1)})
    with pytest.raises(InvalidArgumentError, match="at most one dimension"):
        tf.io.parse_example([[b""]], {"x": FIXED([], tf.int64, 1)})
    with pytest.raises(ValueError, match="serialized must be bytes, but got 3"):
        parse(3, {"x": FIXED([], tf.int64, 1)})


SEQUENCED, VARYING, FIXED = (
    tf.io.FixedLenSequenceFeature,
    tf.io.VarLenFeature,
    tf.io.FixedLenFeature,
)


def numbers(*values):
    return T.Feature(int64_list=T.Int64List(value=values))


def floats(*values):
    return T.Feature(float_list=T.FloatList(value=values))


def sequence(context=None, **lists):
    made = {name: T.FeatureList(feature=steps) for name, steps in lists.items()}
    return T.SequenceExample(
        context=T.Features(feature=context or {}), feature_lists=T.FeatureLists(feature_list=made)
    ).SerializeToString()


LONG = sequence(
    {"c": numbers(1)}, w=[numbers(1, 2), numbers(3, 4)], v=[floats(1), floats(), floats(2, 3)]
)
SHORT = sequence(w=[numbers(9, 9)])


def test_one_sequence():
    context, lists = tf.io.parse_single_sequence_example(
        LONG, {"c": FIXED([], tf.int64)}, {"w": SEQUENCED([2], tf.int64), "v": VARYING(tf.float32)}
    )
    assert int(context["c"]) == 1
    assert lists["w"].tolist() == [[1, 2], [3, 4]]
    assert lists["v"].indices.tolist() == [[0, 0], [2, 0], [2, 1]]
    assert lists["v"].dense_shape.tolist() == [3, 2]


def test_many_sequences():
    context, lists, lengths = tf.io.parse_sequence_example(
        [LONG, SHORT],
        {"c": FIXED([], tf.int64, 5)},
        {"w": SEQUENCED([2], tf.int64), "v": VARYING(tf.float32)},
    )
    assert context["c"].tolist() == [1, 5]
    assert lists["w"].tolist() == [[[1, 2], [3, 4]], [[9, 9], [0, 0]]]
    assert {key: value.tolist() for key, value in lengths.items()} == {"w": [2, 1]}
    assert lists["v"].indices.tolist() == [[0, 0, 0], [0, 2, 0], [0, 2, 1]]
    assert lists["v"].dense_shape.tolist() == [2, 3, 2]


def test_sequences_that_are_not_as_wanted():
    parse = tf.io.parse_single_sequence_example
    for wanted, what in [
        ({"w": SEQUENCED([], tf.int64)}, "'w' of step 0 of record 0 has 2 values, but shape"),
        ({"w": SEQUENCED([2], tf.float32)}, "has dtype int64, but float32 was requested"),
        (
            {"z": SEQUENCED([2], tf.int64)},
            "Feature list 'z' is required, but record 0 does not have it",
        ),
    ]:
        with pytest.raises(InvalidArgumentError, match=what):
            parse(LONG, None, wanted)
    with pytest.raises(InvalidArgumentError, match="is not a valid SequenceExample"):
        parse(b"abc", None, {"w": SEQUENCED([2], tf.int64)})
    with pytest.raises(ValueError, match="Both context_features and sequence_features"):
        parse(LONG)
    with pytest.raises(ValueError, match="Unsupported FixedLenFeature"):
        parse(LONG, None, {"w": FIXED([2], tf.int64)})
    assert parse(LONG, None, {"z": SEQUENCED([2], tf.int64, True)})[1]["z"].shape == (0, 2)


def test_a_layout_that_is_known_is_used_only_for_records_that_have_it(monkeypatch):
    made, own = [], Layout.__init__
    monkeypatch.setattr(
        Layout, "__init__", lambda self, example: made.append(example) or own(self, example)
    )
    layouts = KnownLayouts(most=60)

    def rows(*texts):
        return np.stack([np.frombuffer(text, np.uint8) for text in texts])

    first = layouts.of(rows(example(a=[1]), example(a=[2])))
    assert layouts.of(rows(example(a=[3]))) is first
    assert set(layouts.of(rows(example(b=[1]))).places) == {"b"}
    assert set(layouts.of(rows(example(a=[1]))).places) == {"a"}
    assert len(made) == 3
    for count in range(2, 6):
        assert set(layouts.of(rows(example(c=[*range(count)]))).places) == {"c"}
        assert sum(layouts._layouts) <= 60
    assert len(layouts._layouts) > 1
