"""Steps in code that runs as plain Python: compiled once, never stale."""

import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.counting import counting, cut, parts

import evenfeed as tf


@pytest.fixture(scope="module")
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def driven(function):
    """Return a function that cannot be compiled as a whole."""
    iterator = iter(tf.data.Dataset.range(1000))

    @tf.function
    def outer(*args):
        next(iterator)
        return function(*args)

    return outer


def test_arrays_in_a_closure_are_not_stale(strategy):
    body = counting(lambda x, w: x * w)
    x = cut(strategy, np.float32([1.0, 2.0]))

    def rounds():
        found = []
        for i in range(4):
            w = jnp.float32(i)
            nest = {"a": [w, np.float32(i)]}

            def step(x):
                return body(x, w) + nest["a"][0] + nest["a"][1]  # noqa: B023 - run at once

            found.append(parts(strategy.run(step, args=(x,))))
        return found

    assert driven(rounds)() == [[[3.0 * i], [4.0 * i]] for i in range(4)]
    assert body.runs == 1


def test_a_per_replica_value_in_a_closure_is_an_argument_too(strategy):
    body = counting(lambda x: x)

    def rounds():
        found = []
        for i in range(3):
            value = cut(strategy, np.float32([i, i + 1]))
            found.append(
                parts(strategy.run(lambda: body(value.array.sum())))  # noqa: B023 - run at once
            )
        return found

    assert driven(rounds)() == [[1.0, 1.0], [3.0, 3.0], [5.0, 5.0]]
    assert body.runs == 1


def test_python_values_in_a_closure_make_another_program(strategy):
    x = cut(strategy, np.float32([1.0, 2.0]))

    def rounds():
        return [parts(strategy.run(lambda x, n=n: x * n, args=(x,))) for n in (1, 2, 1)]

    assert driven(rounds)() == [[[1.0], [2.0]], [[2.0], [4.0]], [[1.0], [2.0]]]


class Trainer:
    def __init__(self, strategy):
        self.strategy, self.runs = strategy, 0
        with strategy.scope():
            self.total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def step(self, x):
        self.runs += 1
        self.total.assign_add(jnp.sum(x))
        return x


def test_a_list_that_the_step_adds_to_makes_no_other_program(strategy):
    traced, x = [], cut(strategy, np.float32([1.0, 2.0]))

    def step(x):
        traced.append(x.shape)
        return x * 2

    outer = driven(lambda: strategy.run(step, args=(x,)))
    for _ in range(3):
        assert parts(outer()) == [[2.0], [4.0]]
    assert traced == [(1,)]


FACTOR = 1.0


def of_global(x):
    return x * FACTOR


class Scale:
    factor = 1.0

    def of_attribute(self, x):
        return x * self.factor


@pytest.mark.parametrize(
    "run",
    [
        lambda strategy, fn, x: strategy.run(tf.function(fn), args=(x,)),
        lambda strategy, fn, x: strategy.run(tf.function(lambda x: fn(x) + 0), args=(x,)),
        lambda strategy, fn, x: tf.function(lambda: strategy.run(fn, args=(x,)))(),
        lambda strategy, fn, x: driven(lambda: strategy.run(fn, args=(x,)))(),
    ],
    ids=["run", "helper", "compiled", "driven"],
)
def test_a_new_function_reads_globals_and_attributes_again(strategy, run, monkeypatch):
    scale, x = Scale(), cut(strategy, np.float32([1.0, 2.0]))
    for factor in (1.0, 3.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        scale.factor = factor
        for fn in (of_global, scale.of_attribute):
            assert parts(run(strategy, fn, x)) == [[factor], [2.0 * factor]]


def test_a_new_function_inside_of_another_makes_no_other_program(strategy):
    body, x = counting(lambda x: x * 2), cut(strategy, np.float32([1.0, 2.0]))

    def inner():
        return strategy.run(tf.function(lambda x: body(x) + 0), args=(x,))

    def middle():
        return driven(inner)()

    outer = driven(middle)
    assert [parts(outer()) for _ in range(3)] == [[[2.0], [4.0]]] * 3
    assert body.runs == 1


def test_programs_end_with_their_function(strategy):
    x = cut(strategy, np.float32([1.0, 2.0]))
    function = tf.function(lambda x: x * 2)
    watched = weakref.ref(function)
    assert parts(strategy.run(function, args=(x,))) == [[2.0], [4.0]]
    del function
    gc.collect()
    assert watched() is None


def test_a_list_that_others_add_to_makes_another_program(strategy):
    factors, x = [], cut(strategy, np.float32([1.0, 2.0]))

    def step(x):
        return x * len(factors)

    for count in range(3):
        assert parts(driven(lambda: strategy.run(step, args=(x,)))()) == [[count], [2.0 * count]]
        factors.append(count)


def test_a_method_is_compiled_once(strategy):
    trainer = Trainer(strategy)
    x = cut(strategy, np.float32([1.0, 2.0]))
    f = driven(lambda: strategy.run(trainer.step, args=(x,)))
    for _ in range(3):
        f()
    assert trainer.runs == 1
    assert trainer.total.numpy() == 9.0


def test_functions_of_partial_and_of_functions(strategy):
    body = counting(lambda w, x: w * x)
    x = cut(strategy, np.float32([1.0, 2.0]))

    def rounds():
        found = []
        for i in range(3):
            inner = functools.partial(body, jnp.float32(i))
            compiled = tf.function(lambda x: inner(x) + 0)  # noqa: B023 - run at once
            found.append(parts(strategy.run(compiled, args=(x,))))
        return found

    assert driven(rounds)() == [[[0.0], [0.0]], [[1.0], [2.0]], [[2.0], [4.0]]]
    assert body.runs == 1


def test_a_recursive_function_in_a_closure(strategy):
    x = cut(strategy, np.float32([1.0, 2.0]))

    def outer():
        def power(x, n):
            return x if n == 1 else x * power(x, n - 1)

        return parts(strategy.run(lambda x: power(x, 3), args=(x,)))

    assert driven(outer)() == [[1.0], [8.0]]


def test_what_assigns_to_the_function_around_it_runs_as_plain_python(strategy):
    x = cut(strategy, np.float32([1.0, 2.0]))

    def outer():
        total = 0.0

        def step(x):
            nonlocal total
            total += float(x.sum())

        strategy.run(step, args=(x,))
        strategy.run(step, args=(x,))
        return total

    assert driven(outer)() == 6.0


def test_a_branch_in_a_step_is_named_and_run_as_plain_python(strategy):
    x = cut(strategy, np.float32([1.0, -2.0]))

    def step(x):
        return x if x[0] > 0 else -x

    f = driven(lambda: parts(strategy.run(step, args=(x,))))
    with pytest.warns(UserWarning, match="step runs as plain Python on each replica") as caught:
        assert f() == [[1.0], [2.0]]
    assert caught[0].lineno == step.__code__.co_firstlineno + 1
    assert f() == [[1.0], [2.0]]


def test_an_error_in_a_step_keeps_its_type_and_assigns_nothing(strategy):
    trainer = Trainer(strategy)
    x = cut(strategy, np.float32([1.0, 2.0]))

    def step(x):
        trainer.total.assign_add(tf.constant(1.0))
        raise KeyError("mine")

    f = driven(lambda: strategy.run(step, args=(x,)))
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f()
    assert trainer.total.numpy() == 0.0
    assert parts(driven(lambda: strategy.run(trainer.step, args=(x,)))()) == [[1.0], [2.0]]


def test_arrays_of_the_first_round_are_not_kept(strategy):
    watched = []

    def rounds():
        for i in range(2):
            w = jnp.full((8,), float(i))
            watched.append(weakref.ref(w))
            strategy.run(lambda: w * 2)  # noqa: B023 - run at once

    driven(rounds)()
    gc.collect()
    assert [ref() for ref in watched] == [None, None]


def test_a_tree_of_the_users_own_is_an_argument(strategy):
    @jax.tree_util.register_dataclass
    @__import__("dataclasses").dataclass
    class Params:
        w: jax.Array

    body = counting(lambda p, x: p.w * x)
    x = cut(strategy, np.float32([1.0, 2.0]))

    def rounds():
        found = []
        for i in range(3):
            params = Params(jnp.float32(i))
            found.append(parts(strategy.run(lambda x: body(params, x), args=(x,))))  # noqa: B023
        return found

    assert driven(rounds)() == [[[0.0], [0.0]], [[1.0], [2.0]], [[2.0], [4.0]]]
    assert body.runs == 1


def test_a_compiled_method_runs_on_the_replicas(strategy):
    class Model:
        def __init__(self):
            self.factor = tf.constant(3.0)

        @tf.function
        def step(self, x):
            return x * self.factor

    model = Model()
    x = strategy.experimental_distribute_values_from_function(
        lambda context: jnp.float32(context.replica_id_in_sync_group)
    )
    compiled = tf.function(lambda x: strategy.run(model.step, args=(x,)))
    for result in (strategy.run(model.step, args=(x,)), compiled(x)):
        assert [float(part) for part in result.values] == [0.0, 3.0]
    assert weakref.ref(method := model.step)() is method
