import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

T = tf.train
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
