"""Errors of `SparseFeature` and of serialized sparse tensors say what is wrong, and in which record."""

# pyright: basic

import pytest

import evenfeed as tf


def example(**features):
    held = {
        key: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        for key, values in features.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=held)).SerializeToString()


FEATURE = tf.io.SparseFeature("i", "v", tf.int64, 10)


@pytest.mark.parametrize(
    ("feature", "kind", "said"),
    [
        (FEATURE, ValueError, "Feature 'i' of record 1 has 2 places for the 1 values of 'v'"),
        (FEATURE._replace(dtype=tf.float32), ValueError, "'v' of record 0 has dtype int64"),
        (FEATURE._replace(size=[10]), TypeError, "'s' needs one size for each index_key"),
        (FEATURE._replace(index_key=["i"]), TypeError, "'s' needs one size for each index_key"),
        (FEATURE._replace(value_key=""), ValueError, "'s' needs an index_key and a value_key"),
    ],
)
def test_a_wrong_feature_names_the_record_and_the_key(feature, kind, said):
    records = [example(i=[1], v=[5]), example(i=[1, 2], v=[5])]
    with pytest.raises(kind, match=said):
        tf.io.parse_example(records, {"s": feature})


def test_batches_in_a_map_are_sparse_elements():
    records = [example(i=[3, 1], v=[5, 6]), example(), example(i=[9], v=[7])]
    batches = tf.data.Dataset.from_tensor_slices(records).batch(2)
    mapped = batches.map(lambda batch: tf.io.parse_example(batch, {"s": FEATURE})["s"])
    first, second = mapped
    assert first.indices.tolist() == [[0, 1], [0, 3]]
    assert first.values.tolist() == [6, 5]
    assert first.dense_shape.tolist() == [2, 10]
    assert second.indices.tolist() == [[0, 9]]


@pytest.mark.parametrize(
    ("texts", "rank", "said"),
    [
        ([b"a"], None, "a matrix of three texts in each row"),
        (tf.io.serialize_many_sparse(tf.sparse.from_dense([[1]])), 3, r"ranks \[2\] .* rank 3"),
        (tf.zeros([0, 3], tf.string), None, "no sparse tensors to deserialize"),
    ],
)
def test_texts_that_are_no_sparse_tensors_are_refused(texts, rank, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        tf.io.deserialize_many_sparse(texts, tf.int32, rank=rank)
