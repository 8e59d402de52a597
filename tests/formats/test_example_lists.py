import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.example import example_lists
from evenfeed.formats.example.example_lists import at_once
from evenfeed.formats.example.features import wanted_of

T = tf.train
WANTED = {
    "ids": tf.io.VarLenFeature(tf.int64),
    "words": tf.io.VarLenFeature(tf.string),
    "rows": tf.io.RaggedFeature(tf.float32, value_key="x"),
    "same": tf.io.RaggedFeature(tf.string, value_key="words", row_splits_dtype=tf.int64),
    "pairs": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=7),
    "label": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    "ü": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True, default_value=b"none"),
}


def numbers(*values):
    return T.Feature(int64_list=T.Int64List(value=values))


def floats(*values):
    return T.Feature(float_list=T.FloatList(value=values))


def texts(*values):
    return T.Feature(bytes_list=T.BytesList(value=values))


def example(**features):
    return T.Example(features=T.Features(feature=features)).SerializeToString()


def examples(count):
    chance = np.random.default_rng(0)

    def some(most):
        return range(int(chance.integers(most)))

    return [
        example(
            ids=numbers(*(int(chance.integers(-(2**63), 2**63 - 1)) >> 7 * n for n in some(9))),
            words=texts(*(b"w" * n for n in some(5))),
            x=floats(*chance.random(len(some(40)))),
            pairs=floats(*chance.random(2 * len(some(4)))),
            label=numbers(row) if row % 3 else T.Feature(),
            **{"ü": texts(b"a" * row, b"")} if row % 5 else {"äh": texts(b"other")},
        )
        for row in range(count)
    ]


def shown(value):
    if isinstance(value, tf.SparseTensor):
        return [np.asarray(part).tolist() for part in (value.indices, value.values, value.shape)]
    if isinstance(value, tf.RaggedTensor):
        return [str(value.row_splits.dtype), value.to_list()]
    return [str(value.dtype), np.asarray(value).tolist()]


def outcome(records, wanted):
    try:
        found = tf.io.parse_example(records, wanted)
    except InvalidArgumentError as error:
        return error.message
    return {key: shown(value) for key, value in found.items()}


def outcome_one_by_one(records, wanted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example_lists, "is_worth_it", lambda rows: False)
        return outcome(records, wanted)


def test_features_of_any_number_at_once_are_those_one_by_one():
    records = [*examples(300), b"", example()]
    assert at_once(Texts.of(records), wanted_of(WANTED)) is not None
    assert outcome(records, WANTED) == outcome_one_by_one(records, WANTED)


# Field 1 of the Example, of Features, and of an entry; numbers that are not packed; unknown fields; a name twice.
UNUSUAL = {
    "unpacked": b"\n\x10\n\x0e\n\x03ids\x12\x07\x1a\x05\x08\x01\x08\x96\x01",
    "unknown": b"\n\x12\n\x10\n\x03ids\x12\x07\x1a\x03\n\x01\x05\x50\x01\x50\x01",
    "twice": 2 * example(ids=numbers(3)),
    "another name": example(ö=numbers(3), ids=numbers(4)),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_an_unusual_encoding_costs_only_its_own_record_time(kind, monkeypatch):
    records = [*examples(300), UNUSUAL[kind], *examples(2)]
    expected = outcome_one_by_one(records, WANTED)
    parsed_alone = []
    by_protobuf = example_lists.parsed
    monkeypatch.setattr(
        example_lists,
        "parsed",
        lambda *given: (parsed_alone.append(given[-1]), by_protobuf(*given))[1],
    )
    assert at_once(Texts.of(records), wanted_of(WANTED)) is not None
    odd = {row for row in range(300) if not row % 5} | {300, 301}  # "äh" must be valid UTF-8
    assert set(parsed_alone) <= odd
    assert 300 in parsed_alone
    assert outcome(records, WANTED) == expected


WRONG = {
    "another dtype": example(ids=texts(b"1")),
    "not a multiple": example(pairs=floats(1)),
    "damaged": example(ids=numbers(1))[:-1],
    "a name that is not text": example(ab=numbers(1)).replace(b"ab", b"\xff\xfe"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_record_is_named_as_one_by_one(kind):
    records = [*examples(280), WRONG[kind], *examples(20)]
    message = outcome(records, WANTED)
    assert "ecord 280" in message
    assert message == outcome_one_by_one(records, WANTED)


def test_a_key_with_two_dtypes_is_right_while_it_is_missing():
    both = {
        "a": tf.io.RaggedFeature(tf.int64, value_key="k"),
        "b": tf.io.RaggedFeature(tf.float32, value_key="k"),
    }
    assert outcome([b""] * 300, both) == outcome_one_by_one([b""] * 300, both)
    wrong = [b""] * 300 + [example(k=numbers(1))]
    assert "has dtype int64" in outcome(wrong, both)
