"""Methods of a strategy that older programs call, on strategies of TensorFlow 2."""

import pytest

import evenfeed as tf

STRATEGIES = {
    "two replicas": lambda: tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
    "one replica": lambda: tf.distribute.OneDeviceStrategy("CPU:0"),
}


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_a_value_is_unwrapped_into_its_parts(make):
    strategy = make()
    value = strategy.run(lambda: tf.constant([1.0, 2.0]))
    parts = strategy.experimental_local_results(value)
    assert [part.tolist() for part in strategy.unwrap(value)] == [part.tolist() for part in parts]
    assert strategy.unwrap(3) == (3,)


def test_a_group_is_the_part_if_there_is_only_one():
    two, one = (make() for make in STRATEGIES.values())
    assert two.group(two.run(lambda: tf.constant(1.0))) is None
    assert float(one.group(one.run(lambda: tf.constant(1.0)))) == 1.0
    assert one.group(1, name="all") is None


def test_an_iterator_splits_the_batches_of_a_dataset():
    strategy = STRATEGIES["two replicas"]()
    iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(4).batch(4))
    assert [part.tolist() for part in strategy.unwrap(iterator.get_next())] == [[0, 1], [2, 3]]


def test_an_iterator_gives_each_replica_a_batch_of_a_function():
    strategy = STRATEGIES["two replicas"]()
    iterator = strategy.make_input_fn_iterator(lambda _: tf.data.Dataset.range(4).batch(2))
    assert [part.tolist() for part in strategy.unwrap(iterator.get_next())] == [[0, 1], [2, 3]]
