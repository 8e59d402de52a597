"""How the steps of one program are recognized, placed and numbered."""

import jax
import numpy as np
import pytest
from tests.mirroring import mirrored, parts

import evenfeed as tf


@pytest.fixture(params=[1, 2])
def strategy(request):
    return mirrored(request.param)


def test_what_a_step_closes_over_is_not_stale(strategy):
    factors, held = [2.0], np.float32(3.0)

    def step(x):
        return x * factors[-1] + held

    data = tf.data.Dataset.from_tensor_slices(np.ones(24, np.float32)).batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(data))

    def found():
        return parts(strategy, strategy.run_steps(step, iterator, steps=3)[-1])[0][0]

    wanted = [(found(), 5.0), (found(), 5.0)]
    factors.append(4.0)
    wanted.append((found(), 7.0))
    held = np.float32(1.0)
    wanted.append((found(), 5.0))
    assert [a for a, _ in wanted] == [b for _, b in wanted]


def test_a_single_replica_runs_on_its_device_even_if_jax_refuses_transfers():
    strategy = tf.distribute.OneDeviceStrategy("CPU:1")
    data = tf.data.Dataset.range(400_000, output_type=tf.int32).batch(100_000)
    small = data.map(lambda x: x[:3])
    for given in (data, small):
        iterator = iter(strategy.experimental_distribute_dataset(given))
        results = strategy.run_steps(jax.numpy.negative, iterator, steps=2)
        assert [x.device.id for x in results] == [1, 1]
        with jax.transfer_guard("disallow"), jax.default_device(jax.devices()[0]):
            results = strategy.run_steps(jax.numpy.negative, iterator, steps=2)
            assert [x.device.id for x in results] == [1, 1]
        assert results[1][2] == -300_002


def test_steps_of_one_program_draw_the_numbers_of_single_steps(strategy):
    data = tf.data.Dataset.from_tensor_slices(np.zeros(18, np.float32)).batch(4)
    dataset = strategy.experimental_distribute_dataset(data)

    def draw(x):
        return tf.random.normal([], seed=5), tf.random.uniform([]), tf.reduce_sum(x)

    tf.random.set_seed(1)
    single = tf.function(lambda rows: strategy.run(draw, args=(rows,)))
    wanted = [parts(strategy, single(rows)) for rows in dataset]
    tf.random.set_seed(1)
    iterator = iter(dataset)
    found = [parts(strategy, x) for x in strategy.run_steps(draw, iterator, steps=2)]
    found += [parts(strategy, x) for x in strategy.run_steps(draw, iterator, steps=3)]
    assert found[:4] == wanted[:4]
    # The last step is short: a program of its own, in which only an operation with a seed of its own continues.
    assert [one[0] for one in found[4]] == [one[0] for one in wanted[4]]


def test_elements_of_a_dataset_function_run_in_one_program(strategy):
    data = tf.data.Dataset.range(24, output_type=tf.int32).batch(2)
    for given in (data, data.unbatch()):
        dataset = strategy.distribute_datasets_from_function(lambda _, given=given: given)
        one, many = iter(dataset), iter(dataset)
        wanted = [parts(strategy, next(one)) for _ in range(5)]
        results = strategy.run_steps(lambda x: x, many, steps=5)
        np.testing.assert_equal([parts(strategy, x) for x in results], wanted)
        again = iter(dataset)
        again.set_state(many.get_state())
        rest = [parts(strategy, next(one)) for _ in range(1)]
        np.testing.assert_equal([parts(strategy, next(each)) for each in (many, again)], rest * 2)
