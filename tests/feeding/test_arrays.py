"""Steps as structures of global arrays."""

import jax
import numpy as np
import pytest
from tests.feeding.distribution import distributed, numbers, strategy_of

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

Dataset = tf.data.Dataset


@pytest.mark.parametrize("count", [1, 2, 4])
def test_arrays_are_sharded_over_the_replicas(count):
    strategy = strategy_of(count)
    data = Dataset.from_tensor_slices({"x": np.ones((8, 3), np.float32), "n": None}).batch(4)
    for step in strategy.experimental_distribute_dataset(data).as_array_iterator():
        assert step["n"] is None
        assert step["x"].shape == (4, 3)
        assert step["x"].sharding.is_equivalent_to(strategy.sharding("replica"), 2)


def test_they_go_into_a_jit_of_the_users_without_a_copy():
    strategy = strategy_of(2)
    dataset = strategy.experimental_distribute_dataset(numbers(range(8)).batch(4))

    @jax.jit
    def mean(x):
        return jax.numpy.mean(x)

    with jax.transfer_guard("disallow"):
        means = [mean(x) for x in dataset.as_array_iterator()]
    assert [float(mean) for mean in means] == [1.5, 5.5]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (numbers(range(5)).batch(4), r"\(1,\), \(0,\)"),
        (Dataset.from_tensor_slices(["a", "b"]).batch(2), r"\(1,\), \(1,\)"),
    ],
)
def test_a_step_that_is_not_one_array_says_what_to_type(data, what):
    iterator = distributed(data, 2).as_array_iterator()
    with pytest.raises(InvalidArgumentError, match=what) as caught:
        list(iterator)
    assert "pad_partial_batches=True" in str(caught.value)


def test_it_begins_anew_each_time():
    dataset = distributed(numbers(range(4)).batch(2), 2)
    for _ in range(2):
        assert [x.tolist() for x in dataset.as_array_iterator()] == [[0, 1], [2, 3]]
