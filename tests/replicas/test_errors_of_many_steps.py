"""An error in one of many steps comes at its step, after the steps before it have run."""

import numpy as np
import pytest
from tests.mirroring import without_x64

import evenfeed as tf


@pytest.fixture(scope="module", params=[1, 2])
def strategy(request):
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(request.param)])


def parts(strategy, value):
    return [np.asarray(part).tolist() for part in strategy.experimental_local_results(value)]


def test_an_error_in_the_data_comes_at_its_step(strategy):
    def check(x):
        tf.debugging.assert_none_equal(x, np.int64(9))
        return x

    data = tf.data.Dataset.range(16).map(check).batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(data))
    with pytest.raises(tf.errors.InvalidArgumentError, match="x is 9") as error:
        strategy.run_steps(lambda x: x, iterator, steps=8)
    assert any("step 4 of 8" in note for note in error.value.__notes__)
    assert sorted(x for part in parts(strategy, next(iterator)) for x in part) == [10, 11]


@without_x64
@pytest.mark.parametrize("large", [2**40, 1e300])
def test_a_value_that_does_not_fit_is_an_error_at_its_step(strategy, large):
    rows = np.array([1] * 6 + [large] + [2] * 9)
    data = tf.data.Dataset.from_tensor_slices(rows).batch(2)
    dataset = strategy.experimental_distribute_dataset(data)
    iterator = iter(dataset)
    with strategy.scope():
        total = tf.Variable(
            np.zeros((), np.float32),
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def step(x):
        total.assign_add(tf.cast(tf.reduce_sum(x), tf.float32))

    @tf.function
    def train(iterator):
        for _ in tf.range(5):
            strategy.run(step, args=(next(iterator),))

    with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit") as error:
        strategy.run_steps(step, iterator, steps=5)
    assert any("step 3 of 5" in note for note in error.value.__notes__)
    assert float(total.read_value()) == 6.0  # of the three steps before
    assert sorted(x for part in parts(strategy, next(iterator)) for x in part) == [2, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit") as error:
        train(iter(dataset))
    assert "in iteration 3 of 5 of the loop." in error.value.__notes__
    assert float(total.read_value()) == 12.0
