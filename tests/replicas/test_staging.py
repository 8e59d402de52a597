"""What a function may read and assign while it is traced."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
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


def test_a_pass_that_a_trace_cannot_read_is_not_counted():
    dataset = tf.data.Dataset.range(12).shuffle(12, seed=3).batch(12)
    with contexts.staged(Staging({})):
        for begin in (iter, lambda dataset: dataset.reduce(0, lambda state, row: state)):
            with pytest.raises(Unstaged, match="reads from an iterator"):
                begin(dataset)
    passes = [next(iter(dataset)).tolist() for _ in range(3)]
    assert passes == first_passes(3)


def first_passes(count):
    fresh = tf.data.Dataset.range(12).shuffle(12, seed=3).batch(12)
    return [next(iter(fresh)).tolist() for _ in range(count)]


@pytest.mark.parametrize(
    "distributed",
    [
        lambda dataset: dataset,
        lambda dataset: tf.distribute.MirroredStrategy(
            ["CPU:0", "CPU:1"]
        ).experimental_distribute_dataset(dataset),
        lambda dataset: dataset.distribute(
            jax.sharding.PartitionSpec("data"),
            mesh=jax.sharding.Mesh(jax.devices()[:2], ("data",)),
        ),
    ],
)
def test_the_first_call_of_a_function_gets_the_first_order_of_a_dataset(distributed):
    dataset = distributed(tf.data.Dataset.range(12).shuffle(12, seed=3).batch(12))

    @tf.function
    def rows_of(dataset):
        rows = []
        for batch in dataset:
            parts = tf.distribute.get_strategy().experimental_local_results(batch)
            rows += [row for part in parts for row in np.asarray(part).tolist()]
        return tf.constant(rows)

    assert [rows_of(dataset).tolist() for _ in range(3)] == first_passes(3)
