"""Tables, mostly those that change: what TensorFlow cannot be asked."""

import pytest

import evenfeed as tf


def table():
    made = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)
    made.insert(["a"], [1])
    return made


def test_a_function_that_inserts_does_so_at_each_call():
    words = table()
    step = tf.function(lambda word: words.insert(word, [words.size()]))
    for word in (["b"], ["c"], ["b"]):
        step(tf.constant(word))
    assert words.lookup(["a", "b", "c"]).tolist() == [1, 3, 2]


def test_a_map_may_insert_each_of_its_elements_once():
    words = table()

    def seen(word):
        words.insert([word], [words.size()])
        return words.lookup(word)

    assert [int(x) for x in tf.data.Dataset.from_tensor_slices(["x", "y"]).map(seen)] == [1, 2]
    assert words.size() == 3


def test_a_map_reads_vectors_and_the_keys_of_dense_tables():
    vectors = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    vectors.insert([1], [[3.0, 4.0]])
    found = tf.data.Dataset.range(2).map(vectors.lookup)
    assert [x.tolist() for x in found] == [[0.0, 0.0], [3.0, 4.0]]
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 8, 9)
    dense.insert([1], [5])
    assert [int(x) for x in tf.data.Dataset.range(2).map(dense.lookup)] == [-1, 5]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="8 is the empty_key or the deleted_key"
    ):
        list(tf.data.Dataset.range(8, 9).map(dense.lookup))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda t: t.insert(["a", "b"], [1]), tf.errors.InvalidArgumentError, r"shape \[2\]"),
        (
            lambda t: t.lookup(tf.constant([1.0])),
            ValueError,
            "keys must be string, but got float32",
        ),
        (
            lambda t: tf.data.experimental.table_from_dataset(tf.data.Dataset.range(3)),
            TypeError,
            r"dataset of \(key, value\)",
        ),
    ],
)
def test_an_error_says_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text):
        call(table())


def test_replicas_look_up_and_insert_the_64_bit_keys_of_a_dataset():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    keys = tf.lookup.KeyValueTensorInitializer([0, 1, 2], [3, 4, 5], tf.int64, tf.int64)
    known = tf.lookup.StaticHashTable(keys, default_value=-1)
    found = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, default_value=-1)
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))

    def step(key):
        value = known.lookup(key)
        found.insert(key, value)
        return value

    steps = [strategy.gather(strategy.run(step, (batch,)), axis=0).tolist() for batch in dataset]
    assert steps == [[3, 4], [5, -1]]
    assert found.lookup([1, 3, 4]).tolist() == [4, -1, -1]


def test_keys_that_are_narrower_than_32_bits_are_refused():
    keys = tf.lookup.KeyValueTensorInitializer([0, 1], [3, 4], tf.int64, tf.int64)
    with pytest.raises(TypeError, match="must be int64, but got int16"):
        tf.lookup.StaticHashTable(keys, default_value=-1).lookup(tf.constant([1], tf.int16))
