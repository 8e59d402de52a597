import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import plan_of

WANTED = {
    "label": tf.io.FixedLenFeature([], tf.int64),
    "x": tf.io.FixedLenFeature([2], tf.float32),
    "name": tf.io.FixedLenFeature([], tf.string),
}


def example(number, **more):
    kinds = tf.train
    features = {
        "label": kinds.Feature(int64_list=kinds.Int64List(value=[number])),
        "x": kinds.Feature(float_list=kinds.FloatList(value=[number, 0.5])),
        "name": kinds.Feature(bytes_list=kinds.BytesList(value=[b"n%d" % number])),
        **more,
    }
    return kinds.Example(features=kinds.Features(feature=features)).SerializeToString()


RECORDS = [example(number) for number in range(40)]


@pytest.fixture
def records():
    return tf.data.Dataset.from_tensor_slices(RECORDS)


def function_of(dataset):
    return plan_of(dataset).function


def parse(record):
    found = tf.io.parse_single_example(record, WANTED)
    return found["x"] * 2 + 1, found["label"], found["name"]


def test_a_function_that_parses_runs_on_blocks(records):
    dataset = records.map(parse)
    assert function_of(dataset).is_vectorised
    assert [str(spec.dtype) for spec in dataset.element_spec] == ["float32", "int64", "object"]
    assert [tuple(spec.shape) for spec in dataset.element_spec] == [(2,), (), ()]
    found = list(dataset)
    alone = list(records.map(parse, vectorize=False))
    np.testing.assert_equal(found, alone)
    assert found[3][0].tolist() == [7.0, 2.0]


def test_ids_keep_their_64_bits():
    big = 2**40 + 1
    dataset = tf.data.Dataset.from_tensor_slices([example(big)] * 3).map(
        lambda s: tf.io.parse_single_example(s, WANTED)["label"] + 1
    )
    assert [int(label) for label in dataset] == [big + 1] * 3


def test_a_function_that_parses_batches(records):
    dataset = records.batch(16).map(lambda s: tf.io.parse_example(s, WANTED))
    assert function_of(dataset).is_vectorised
    assert {k: tuple(s.shape) for k, s in dataset.element_spec.items()} == {
        "label": (None,),
        "x": (None, 2),
        "name": (None,),
    }
    batches = list(dataset)
    assert [len(batch["label"]) for batch in batches] == [16, 16, 8]
    assert np.concatenate([batch["label"] for batch in batches]).tolist() == list(range(40))


def test_parsed_rows_have_positions(records):
    dataset = records.map(parse).shuffle(10, seed=1).skip(3)
    again = records.shuffle(10, seed=1).skip(3).map(parse)
    assert [int(label) for _, label, _ in dataset] == [int(label) for _, label, _ in again]


def test_parsing_twice_and_beside_numbers(records):
    def both(number, record):
        one = tf.io.parse_single_example(record, WANTED)
        two = tf.io.parse_single_example(record, {"label": WANTED["label"]})
        return number + one["label"] + two["label"], record

    dataset = tf.data.Dataset.zip(tf.data.Dataset.range(40), records).map(both)
    assert function_of(dataset).is_vectorised
    assert [int(total) for total, _ in dataset] == [3 * number for number in range(40)]
    assert [record.item() for _, record in dataset] == RECORDS


def test_a_bad_record_fails_alone():
    bad = [*RECORDS[:20], b"abc", *RECORDS[21:]]
    reading = iter(tf.data.Dataset.from_tensor_slices(bad).map(parse))
    for number in range(20):
        assert int(next(reading)[1]) == number
    with pytest.raises(InvalidArgumentError, match="is not a valid Example") as caught:
        next(reading)
    assert any("mapping element 20 (abc) with parse" in note for note in caught.value.__notes__)
    assert [int(label) for _, label, _ in reading] == list(range(21, 40))


def test_features_of_any_number_run_one_by_one(records):
    dataset = records.map(
        lambda s: tf.sparse.to_dense(
            tf.io.parse_single_example(s, {"x": tf.io.VarLenFeature(tf.float32)})["x"]
        )
    )
    assert not function_of(dataset).is_vectorised
    assert next(iter(dataset)).tolist() == [0.0, 0.5]


def test_text_of_too_many_dimensions_says_so_when_it_runs(records):
    dataset = records.batch(4).map(
        lambda s: tf.io.parse_single_example(s, WANTED)["label"],
        output_signature=tf.TensorSpec([], tf.int64),
    )
    with pytest.raises(ValueError, match="serialized must be a scalar"):
        next(iter(dataset))


def test_a_function_that_catches_everything_does_not_catch_the_trace(records):
    def careful(record):
        try:
            return tf.io.parse_single_example(record, WANTED)["label"]
        except Exception:  # noqa: BLE001 - what a user may write
            return np.int64(-1)

    dataset = records.map(careful)
    assert [int(label) for label in dataset] == list(range(40))
