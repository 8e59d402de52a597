"""`Strategy.run`: the same results in every mode and on any number of replicas."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import WAYS, context, each, mirrored, number, parts, run

import evenfeed as tf

ROWS, FEATURES = 22, 3
DATA = np.random.default_rng(0).normal(size=(ROWS, FEATURES + 1)).astype(np.float32)
START = [np.full((FEATURES, 4), 0.3, np.float32), np.linspace(-1, 1, 4, dtype=np.float32)]


def loss(weights, rows):
    x, y = rows[:, :-1], rows[:, -1]
    return ((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2).sum()


change_of = jax.jit(jax.grad(loss))


def trained_on_one_device(batch, epochs):
    weights = [jnp.asarray(w) for w in START]
    for _ in range(epochs):
        for first in range(0, ROWS, batch):
            rows = DATA[first : first + batch]
            changes = change_of(weights, rows)
            weights = [w - 0.1 * c / len(rows) for w, c in zip(weights, changes, strict=True)]
    return weights


def trained(strategy, way, batch, epochs):
    with strategy.scope():
        weights = [
            tf.Variable(w, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA) for w in START
        ]

    def step(rows):
        own = change_of([w.value() for w in weights], rows)
        total, count = context().all_reduce("SUM", (own, jnp.float32(rows.shape[0])))
        for weight, change in zip(weights, total, strict=True):
            weight.assign_sub(0.1 * change / count)
        return count

    def whole(rows):
        return strategy.run(step, args=(rows,))

    whole = tf.function(whole) if way == "compiled" else whole
    dataset = tf.data.Dataset.from_tensor_slices(DATA).batch(batch)
    for _ in range(epochs):
        for rows in strategy.experimental_distribute_dataset(dataset):
            whole(rows)
    return weights


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_weights_are_those_of_one_device(count, way):
    """22 rows in batches of 8: two even batches, and a last one of 6 that is uneven on 4 and 8 replicas."""
    strategy = mirrored(count)
    weights = trained(strategy, way, batch=8 if count != 3 else 9, epochs=2)
    expected = trained_on_one_device(8 if count != 3 else 9, epochs=2)
    for variable, other in zip(weights, expected, strict=True):
        for copy in strategy.experimental_local_results(variable):
            np.testing.assert_allclose(copy, other, rtol=2e-5, atol=1e-6)
        copies = [np.asarray(copy) for copy in strategy.experimental_local_results(variable)]
        assert all((copy == copies[0]).all() for copy in copies), "copies drifted apart"


@pytest.mark.filterwarnings("ignore:The replicas get")
def test_batches_that_are_always_uneven_train_alike():
    weights = trained(mirrored(4), "compiled", batch=7, epochs=2)
    for variable, other in zip(weights, trained_on_one_device(7, 2), strict=True):
        np.testing.assert_allclose(variable.numpy(), other, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [1, 2])
def test_arguments_come_by_place_and_by_name(way, count):
    strategy = mirrored(count)
    own = each(strategy, lambda r: jnp.float32(r + 1))

    def call(x, plain):
        return strategy.run(
            lambda x, y, *, z: x * y + z["a"], args=(x, plain), kwargs={"z": {"a": x}}
        )

    call = tf.function(call) if way == "compiled" else call
    found = parts(strategy, call(own, 10.0))
    assert [float(p) for p in found] == [11.0 * (r + 1) for r in range(count)]


def test_a_function_is_plain_python_unless_it_is_compiled():
    strategy = mirrored(2)
    calls = []

    def step(x):
        calls.append(isinstance(x, jax.core.Tracer))
        return x

    value = each(strategy, jnp.float32)
    for _ in range(2):
        strategy.run(step, args=(value,))
    assert calls == [False] * 4
    calls.clear()
    compiled = tf.function(step)
    for _ in range(2):
        strategy.run(compiled, args=(value,))
    assert calls == [True]


@pytest.mark.parametrize("way", WAYS)
def test_the_context_says_who_runs(way):
    strategy = mirrored(3)

    def step():
        here = context()
        assert here.strategy is strategy
        assert here.num_replicas_in_sync == 3
        assert not tf.distribute.in_cross_replica_context()
        return number() * 1

    assert [int(p) for p in parts(strategy, run(way, strategy, step))] == [0, 1, 2]
    assert context() is None or context().num_replicas_in_sync == 1


# What is not run again with 64-bit types: the width of numbers matters neither to threads nor to warnings, and it is the same
# on any number of replicas (training on 2 is even, on 4 uneven). Of other tests, one variant runs again.
NOT_AGAIN = {
    "test_replica_threads.py": [""],
    "test_uneven_warning.py": [""],
    "test_running.py": [f"test_weights_are_those_of_one_device[{count}-" for count in (1, 3, 8)],
}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_replicas_work_with_64_bit_types():
    """Runs the tests of replicas, of distributed input and of training again, in a separate process."""
    tests = Path(__file__).parents[1]
    left_out = [
        f"{name}::{test}" if test else name for name, all_ in NOT_AGAIN.items() for test in all_
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider",
         "-p", "tests.one_of_each", str(tests / "replicas"), str(tests / "feeding" / "test_distributed_dataset.py"),
         *(f"--deselect=tests/replicas/{name}" for name in left_out)],
        # What XLA optimises was tested by the first run.
        env=os.environ | {"JAX_ENABLE_X64": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}, cwd=tests.parent,
        capture_output=True, text=True, check=False, timeout=890,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("op", ["SUM", "MEAN"])
def test_a_variable_made_in_a_compiled_step_starts_with_what_a_collective_gives(op):
    strategy, made = mirrored(2), []

    def step():
        if not made:
            made.append(tf.Variable(context().all_reduce(op, jnp.float32(1.5))))
        return made[0].value()

    with strategy.scope():
        found = parts(strategy, run("compiled", strategy, step))
    assert [part.item() for part in found] == [{"SUM": 3.0, "MEAN": 1.5}[op]] * 2
