"""What a function may read and assign while it is traced."""

import threading

import jax
import jax.numpy as jnp
import pytest

import evenfeed as tf
from evenfeed.replicas import contexts
from evenfeed.replicas.function.staging import Creates, Staging, Unstaged, live


def test_no_except_of_the_users_catches_unstaged():
    assert not issubclass(Unstaged, Exception)


def test_a_reason_is_for_all_arguments_unless_it_is_expected():
    assert Unstaged("a branch").always
    assert not Unstaged("uneven parts", expected=True).always
    assert Unstaged("an iterator", expected=True, always=True).always


def test_variables_are_known_as_long_as_they_live():
    v = tf.Variable(1.0)
    assert any(known is v for known in live.list())
    number = v.number
    del v
    assert all(known.number != number for known in live.list())


def test_variables_can_be_listed_while_others_are_made():
    stop = threading.Event()
    errors = []

    def list_them():
        while not stop.is_set():
            try:
                live.list()
            except RuntimeError as error:
                errors.append(error)

    thread = threading.Thread(target=list_them)
    thread.start()
    kept = [tf.Variable(0.0) for _ in range(300)]
    del kept
    stop.set()
    thread.join()
    assert not errors


def test_a_variable_that_the_trace_does_not_know_ends_it():
    staging = Staging({})
    with contexts.staged(staging), pytest.raises(Creates, match="is new"):
        staging.read(tf_variable)


tf_variable = tf.Variable(2.0, name="mine")


def test_a_trace_that_creates_reads_what_the_variable_holds():
    staging = Staging({}, creates=True)
    with contexts.staged(staging):
        assert staging.read(tf_variable).item() == 2.0


def test_an_assignment_inside_scan_is_refused_and_leaks_nothing():
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        def step(carry, item):
            v.assign_add(item)
            return carry, item

        return jax.lax.scan(step, 0.0, x)[1]

    with pytest.raises(
        ValueError, match=r"inside a function that JAX transforms[\s\S]*test_staging"
    ):
        f(jnp.arange(3.0, dtype=jnp.float32))
    assert v.numpy() == 0.0


def test_the_hook_on_iterators_ends_with_the_trace():
    iterator = iter(tf.data.Dataset.range(3))
    with contexts.staged(Staging({})), pytest.raises(Unstaged, match="reads from an iterator"):
        next(iterator)
    assert int(next(iterator)) == 0
    assert int(next(iterator)) == 1
