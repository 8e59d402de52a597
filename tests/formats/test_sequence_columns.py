import pytest
from tests.formats.test_sequence_steps import CONTEXT, LISTS, RECORDS, shown

import evenfeed as tf

T = tf.train


def dataset():
    return tf.data.Dataset.from_tensor_slices(RECORDS)


def single(serialized):
    return tf.io.parse_single_sequence_example(serialized, CONTEXT, LISTS)


def several(serialized):
    return tf.io.parse_sequence_example(serialized, CONTEXT, LISTS)


def test_sequences_in_a_map_are_those_parsed_alone():
    mapped = dataset().map(single)
    assert list(map(shown, mapped)) == [shown(single(record)) for record in RECORDS]


@pytest.mark.parametrize("size", [1, 7, 64])
def test_batches_of_sequences_in_a_map_are_those_parsed_alone(size):
    mapped = dataset().batch(size).map(several)
    batches = [RECORDS[start : start + size] for start in range(0, len(RECORDS), size)]
    assert list(map(shown, mapped)) == [shown(several(batch)) for batch in batches]


def test_the_map_parses_many_sequences_at_a_time():
    calls = []

    def parse(record):
        calls.append(record)
        return single(record)

    assert len(list(dataset().map(parse))) == len(RECORDS)
    assert len(calls) < len(RECORDS)


def test_the_spec_says_what_is_known_of_sequences():
    context, lists = dataset().map(single).element_spec
    assert context["label"].shape == []
    assert context["tags"].shape == [None]
    assert lists["ids"].shape == [None]
    assert lists["points"].shape == [None, 2]
    assert lists["words"].shape == [None, None]
    assert lists["rows"].shape == [None, None]
    context, lists, lengths = dataset().batch(4, drop_remainder=True).map(several).element_spec
    assert context["label"].shape == [4]
    assert lists["points"].shape == [4, None, 2]
    assert lists["rows"].shape == [4, None, None]
    assert lengths["ids"].shape == [4]


def test_a_sequence_that_is_wrong_is_named_in_a_map():
    records = tf.data.Dataset.from_tensor_slices([*RECORDS, b"broken"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a valid SequenceExample"):
        list(records.map(single))


def test_labels_and_steps_can_be_computed_with():
    def total(record):
        context, lists = tf.io.parse_single_sequence_example(record, CONTEXT, LISTS)
        return context["label"] + tf.reduce_sum(lists["ids"])

    expected = [row + sum(row**step for step in range(row % 6)) for row in range(len(RECORDS))]
    assert [int(value) for value in dataset().map(total)] == expected
