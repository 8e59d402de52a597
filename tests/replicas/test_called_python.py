"""Compiled steps that call Python functions, which raise."""

import threading
from contextlib import suppress

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.replicas.function.called_python import wait_for_calls
from evenfeed.tensors.host_calls import finish_calls

SCALAR = jax.ShapeDtypeStruct((), jnp.float32)


def pure(call, x):
    return jax.pure_callback(call, SCALAR, x, vmap_method="sequential")


def with_effect(call, x):
    return jax.experimental.io_callback(call, SCALAR, x)


def debug(call, x):
    jax.debug.callback(call, x)
    return x


class Failing:
    """A step that calls a function, which raises at the third step."""

    def __init__(self, way):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with self.strategy.scope():
            self.total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        dataset = tf.data.Dataset.range(10, output_type=tf.float32).batch(2)
        self.iterator = iter(self.strategy.experimental_distribute_dataset(dataset))
        self._way = way

    def step(self, x):
        self.total.assign_add(tf.reduce_sum(x))
        return self._way(self._check, tf.reduce_sum(x))

    @staticmethod
    def _check(x):
        if x >= 4:
            raise ValueError(f"{x} is too large")
        return np.asarray(x)

    @property
    def next_batch(self):
        return np.concatenate(self.strategy.experimental_local_results(next(self.iterator)))


@pytest.fixture
def failing(way):
    found = Failing(way)
    yield found
    found.iterator.close()  # the error that the test holds keeps it alive


@pytest.mark.parametrize("way", [pure, with_effect, debug])
def test_a_step_that_fails_in_python_raises_at_once_and_leaves_variables_alone(failing):
    run = tf.function(lambda: failing.strategy.run(failing.step, args=(next(failing.iterator),)))
    run()
    run()
    with pytest.raises(Exception, match="is too large") as caught:
        run()
    assert "variables keep the values from before the program" in str(caught.value.__notes__)
    assert float(failing.total) == 0 + 1 + 2 + 3
    assert failing.next_batch.tolist() == [6, 7]


@pytest.mark.parametrize("way", [pure, with_effect])
def test_steps_that_compute_in_python_run_one_by_one_and_errors_name_the_step(failing):
    with (
        pytest.warns(UserWarning, match="calls Python while it runs"),
        pytest.raises(Exception, match="is too large") as caught,
    ):
        failing.strategy.run_steps(failing.step, failing.iterator, 5)
    assert "in step 2 of 5." in caught.value.__notes__
    assert float(failing.total) == 0 + 1 + 2 + 3
    assert failing.next_batch.tolist() == [6, 7]


@pytest.mark.parametrize("way", [debug])
def test_a_program_of_many_steps_that_fails_in_a_debug_callback_changes_nothing(failing):
    with pytest.raises(Exception, match="is too large") as caught:
        failing.strategy.run_steps(failing.step, failing.iterator, 5)
    assert "while the steps 0 to 4 of 5 ran." in caught.value.__notes__
    assert float(failing.total) == 0
    assert failing.next_batch.tolist() == [0, 1]


def test_steps_that_draw_random_numbers_run_in_one_program(recwarn):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = tf.data.Dataset.range(8, output_type=tf.float32).batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    assert len(strategy.run_steps(lambda x: x + tf.random.uniform([1]), iterator, 4)) == 4
    assert not recwarn


def test_an_error_that_no_callback_raised_has_no_note_about_callbacks():
    array = jnp.ones(3) + 1
    array.delete()
    with pytest.raises(RuntimeError, match="deleted") as caught:
        wait_for_calls([array])
    assert "compiled program" not in str(getattr(caught.value, "__notes__", ""))


def test_what_another_thread_assigns_while_a_run_of_steps_fails_remains():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def assign_and_fail(x):
        thread = threading.Thread(target=total.assign, args=(100.0,))
        thread.start()
        thread.join()
        raise ValueError(f"{x} is wrong")

    def step(x):
        total.assign_add(tf.reduce_sum(x))
        jax.debug.callback(assign_and_fail, tf.reduce_sum(x))

    dataset = tf.data.Dataset.range(8, output_type=tf.float32).batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    with pytest.raises(Exception, match="is wrong"):
        strategy.run_steps(step, iterator, 4)
    iterator.close()
    with suppress(Exception):  # the call of the other replica may fail later
        finish_calls()
    finish_calls()
    assert float(total.numpy()) == 100
