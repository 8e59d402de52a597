import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

T = tf.train
COUNT = 300
WANTED = {
    "ids": tf.io.VarLenFeature(tf.int64),
    "words": tf.io.VarLenFeature(tf.string),
    "rows": tf.io.RaggedFeature(tf.float32, value_key="x"),
    "steps": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=7),
    "names": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def example(row):
    def floats(count):
        values = [row + n / 4 for n in range(count)]
        return T.Feature(float_list=T.FloatList(value=values))

    def texts(count):
        return T.Feature(bytes_list=T.BytesList(value=[b"%d" % row * n for n in range(count)]))

    def numbers(*values):
        return T.Feature(int64_list=T.Int64List(value=values))

    features = {
        "label": numbers(row),
        "ids": numbers(*range(row % 7)),
        "words": texts(row % 5),
        "x": floats(row % 6),
        "steps": floats(2 * (row % 3)),
    }
    if row % 4:
        features["names"] = texts(row % 3)
    return T.Example(features=T.Features(feature=features)).SerializeToString()


RECORDS = [example(row) for row in range(COUNT)]


def shown(value):
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    if isinstance(value, tf.SparseTensor):
        return [np.asarray(part).tolist() for part in (value.indices, value.values, value.shape)]
    if isinstance(value, tf.RaggedTensor):
        return [str(value.row_splits.dtype), value.to_list()]
    return [str(value.dtype), np.asarray(value).tolist()]


def records():
    return tf.data.Dataset.from_tensor_slices(RECORDS)


def parsed(serialized):
    return tf.io.parse_single_example(serialized, WANTED)


def parsed_batch(serialized):
    return tf.io.parse_example(serialized, WANTED)


def at_once(dataset):
    return "per element" not in str(dataset.explain())


def test_single_examples_are_parsed_at_once_with_features_of_any_number():
    dataset = records().map(parsed)
    found = list(map(shown, dataset))
    assert at_once(dataset)
    assert found == [shown(parsed(record)) for record in RECORDS]


@pytest.mark.parametrize("size", [64, 100, COUNT])
def test_batches_are_parsed_at_once_with_features_of_any_number(size):
    dataset = records().batch(size).map(parsed_batch)
    starts = range(0, COUNT, size)
    assert list(map(shown, dataset)) == [
        shown(parsed_batch(RECORDS[start : start + size])) for start in starts
    ]


def test_the_specs_are_those_of_the_values():
    single, batches = records().map(parsed), records().batch(100, drop_remainder=True)
    batches = batches.map(parsed_batch)
    for dataset in (single, batches):
        for key, spec in dataset.element_spec.items():
            assert all(spec.is_compatible_with(element[key]) for element in dataset.take(3)), key
    assert single.element_spec["ids"] == tf.SparseTensorSpec([None], tf.int64)
    assert single.element_spec["steps"] == tf.TensorSpec([None, 2], tf.float32)
    assert single.element_spec["rows"] == tf.TensorSpec([None], tf.float32)
    assert batches.element_spec["rows"] == tf.RaggedTensorSpec([100, None], tf.float32, 1, tf.int32)


# What functions do with the features after they parsed them.
USES = {
    "dense": lambda parts: tf.sparse.to_dense(parts["ids"]),
    "dense if sparse": lambda parts: {
        key: tf.sparse.to_dense(part) if isinstance(part, tf.SparseTensor) else part
        for key, part in parts.items()
    },
    "hasattr": lambda parts: parts["ids"].values if hasattr(parts["ids"], "values") else 0,
    "values": lambda parts: parts["words"].values,
    "dtype": lambda parts: parts["label"] * (2 if parts["ids"].dtype == tf.int64 else 3),
    "arithmetic": lambda parts: parts["steps"] * 2 + tf.cast(parts["label"], tf.float32),
    "sum": lambda parts: tf.reduce_sum(parts["rows"]),
    "length": lambda parts: tf.shape(parts["rows"])[0],
    "text": lambda parts: tf.strings.join([parts["names"], parts["names"]]),
    "condition": lambda parts: tf.cond(
        tf.size(parts["rows"]) > 2, lambda: parts["label"], lambda: -parts["label"]
    ),
}


@pytest.mark.parametrize("use", USES)
def test_what_is_done_with_the_features_in_a_map_is_what_is_done_outside(use):
    dataset = records().map(lambda record: USES[use](parsed(record)))
    assert list(map(shown, dataset)) == [shown(USES[use](parsed(record))) for record in RECORDS]


def test_later_stages_get_the_same_features():
    dataset = (
        records().map(parsed).shuffle(50, seed=1).filter(lambda parts: parts["label"] % 2 == 0)
    )
    rows = [shown(parts) for parts in dataset]
    assert sorted(row["label"][1] for row in rows) == list(range(0, COUNT, 2))
    assert all(row == shown(parsed(RECORDS[row["label"][1]])) for row in rows)


def test_padded_batches_of_sequences_are_padded():
    wanted = {"steps": WANTED["steps"]}
    dataset = records().map(lambda record: tf.io.parse_single_example(record, wanted))
    lengths = [batch["steps"].shape for batch in dataset.padded_batch(COUNT)]
    assert lengths == [(COUNT, 2, 2)]


def test_a_wrong_record_raises_at_its_place():
    wrong = T.Feature(bytes_list=T.BytesList(value=[b"1"]))
    broken = T.Example(features=T.Features(feature={"ids": wrong})).SerializeToString()
    wanted = {"ids": WANTED["ids"]}
    dataset = tf.data.Dataset.from_tensor_slices([*RECORDS[:280], broken, *RECORDS[:10]])
    iterator = iter(dataset.map(lambda record: tf.io.parse_single_example(record, wanted)))
    for _ in range(280):
        next(iterator)
    with pytest.raises(InvalidArgumentError, match="has dtype string, but int64 was requested"):
        next(iterator)
