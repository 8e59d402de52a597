"""Functions that run as plain Python: how they end."""

import pytest

import evenfeed as tf


def test_the_end_of_the_data_in_a_function_is_an_error():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4)))

    @tf.function
    def step(steps):
        return strategy.run(lambda x: x + 1, args=(next(steps),))

    assert [part.tolist() for part in step(iterator).values] == [[1, 2], [3, 4]]
    with pytest.raises(tf.errors.OutOfRangeError, match="The data has ended"):
        step(iterator)
