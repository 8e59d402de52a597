"""Steps as structures of sharded arrays."""

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


def test_a_step_that_is_not_one_array_says_what_to_type():
    iterator = distributed(numbers(range(5)).batch(4), 2).as_array_iterator()
    assert next(iterator).tolist() == [0, 1, 2, 3]
    with pytest.raises(InvalidArgumentError, match=r"\(1,\), \(0,\)") as caught:
        next(iterator)
    assert "pad_partial_batches=True" in str(caught.value)


@pytest.mark.parametrize("count", [1, 2])
def test_text_is_not_an_array(count):
    iterator = distributed(
        Dataset.from_tensor_slices(["a", "b"]).batch(2), count
    ).as_array_iterator()
    with pytest.raises(
        InvalidArgumentError, match="it has strings, which stay on the host"
    ) as caught:
        next(iterator)
    assert "drop the strings with map" in str(caught.value)


@pytest.mark.parametrize("count", [1, 2])
def test_steps_that_stay_on_the_host_become_arrays_on_the_devices(count):
    strategy = strategy_of(count)
    options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
    data = strategy.experimental_distribute_dataset(numbers(range(4)).batch(4), options)
    (array,) = data.as_array_iterator()
    assert array.tolist() == [0, 1, 2, 3]
    assert array.sharding == strategy.sharding("replica")


def test_scalars_of_one_device_are_arrays():
    strategy = strategy_of(1)
    arrays = list(strategy.experimental_distribute_dataset(numbers(range(2))).as_array_iterator())
    assert [array.tolist() for array in arrays] == [0, 1]
    assert all(isinstance(array, jax.Array) for array in arrays)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_it_resumes_from_its_own_state_and_from_that_of_the_steps(count):
    dataset = distributed(numbers(range(12)).batch(4), count)
    arrays, steps = dataset.as_array_iterator(), iter(dataset)
    assert isinstance(arrays, tf.data.Iterator)
    next(arrays), next(steps)
    for state in (arrays.get_state(), steps.get_state()):
        again = dataset.as_array_iterator()
        again.set_state(state)
        assert [x.tolist() for x in again] == [[4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize("count", [1, 2])
def test_its_specs_are_those_of_the_arrays(count):
    data = Dataset.from_tensor_slices({"x": np.ones((8, 3), np.float32), "n": None})
    iterator = distributed(data.batch(4, drop_remainder=True).repeat(), count).as_array_iterator()
    spec = iterator.element_spec
    assert spec["x"] == tf.TensorSpec([4, 3], tf.float32)
    assert spec["x"].is_compatible_with(next(iterator)["x"])


def test_it_begins_anew_each_time():
    dataset = distributed(numbers(range(4)).batch(2), 2)
    for _ in range(2):
        assert [x.tolist() for x in dataset.as_array_iterator()] == [[0, 1], [2, 3]]
