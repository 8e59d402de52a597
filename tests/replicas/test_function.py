"""`evenfeed.function`: decorating functions and methods, and what runs as plain Python."""

import gc
import warnings
import weakref

import jax
import numpy as np
import pytest
from tests.counting import counting, parts

import evenfeed as tf


@pytest.fixture(scope="module")
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_it_decorates_with_and_without_arguments():
    @tf.function
    def one(x):
        """Add one."""
        return x + 1

    @tf.function(jit_compile=True, reduce_retracing=True, autograph=False)
    def two(x):
        return x + 2

    assert (int(one(tf.constant(1))), int(two(tf.constant(1)))) == (2, 3)
    assert (one.__name__, one.__doc__, one.name) == ("one", "Add one.", "one")
    assert one.python_function(1) == 2


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'fast'"):
        tf.function(lambda x: x, fast=True)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="needs a function, but got 3"):
        tf.function(3)


class Model:
    def __init__(self, factor):
        self.factor = factor
        self.traces = 0

    @tf.function
    def __call__(self, x):
        self.traces += 1
        return x * self.factor

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def signed(self, x):
        return x * self.factor

    @classmethod
    @tf.function
    def of_class(cls, x):
        return x + len(cls.__name__)

    @staticmethod
    @tf.function
    def of_nobody(x):
        return x + 1


def test_each_object_has_its_own_programs():
    two, three = Model(2), Model(3)
    for _ in range(2):
        assert (int(two(tf.constant(1))), int(three(tf.constant(1)))) == (2, 3)
    assert (two.traces, three.traces) == (1, 1)
    assert two.__call__.experimental_get_tracing_count() == 1
    assert two.__call__ == two.__call__ != three.__call__


def test_a_method_takes_a_signature_without_self():
    assert Model(2).signed(1).item() == 2.0
    with pytest.raises(TypeError, match="x does not fit"):
        Model(2).signed(tf.constant(1))


def test_an_object_that_nobody_else_holds_lives_through_its_call():
    assert Model(2).signed(tf.constant(3.0)).item() == 6.0


def test_a_method_does_not_keep_its_object_alive():
    model = Model(2)
    model(tf.constant(1))
    watched = weakref.ref(model)
    del model
    gc.collect()
    assert watched() is None


def test_an_argument_is_not_kept_alive_and_is_compared_by_identity():
    class Config:
        size = 3

    body = counting(lambda x, config: x * config.size)
    f = tf.function(body)
    first, second = Config(), Config()
    assert [int(f(tf.constant(2), c)) for c in (first, second, first)] == [6, 6, 6]
    assert body.runs == 2
    watched = weakref.ref(first)
    del first
    gc.collect()
    assert watched() is None


def test_class_and_static_methods():
    assert int(Model.of_class(tf.constant(1))) == int(Model(1).of_class(tf.constant(1))) == 6
    assert int(Model.of_nobody(tf.constant(1))) == int(Model(1).of_nobody(tf.constant(1))) == 2


def test_a_method_can_be_called_through_its_class():
    assert int(Model.__call__(Model(4), tf.constant(2))) == 8


def test_an_object_with_slots_has_methods_too():
    class Slotted:
        __slots__ = ("factor",)

        @tf.function
        def times(self, x):
            return x * self.factor

    slotted = Slotted()
    slotted.factor = 5
    assert int(slotted.times(tf.constant(2))) == 10


def distributed(strategy, count=8, batch=4):
    return strategy.experimental_distribute_dataset(tf.data.Dataset.range(count).batch(batch))


def test_an_iterator_is_driven_and_its_step_compiled_once(strategy):
    body = counting(tf.reduce_sum)

    @tf.function
    def two_steps(iterator):
        total = 0
        for _ in tf.range(2):
            parts = strategy.run(lambda x: body(x) + 0, args=(next(iterator),))
            total += strategy.reduce("SUM", parts, axis=None)
        return total

    assert int(two_steps(iter(distributed(strategy)))) == 28
    assert int(two_steps(iter(distributed(strategy)))) == 28
    # With 64 bits the sum becomes int64 in the first step, so the loop is traced once more.
    assert body.runs == (2 if jax.config.read("jax_enable_x64") else 1)


@pytest.mark.parametrize("ask", [next, lambda it: it.get_next()])
def test_an_iterator_that_is_closed_over_is_not_read_while_tracing(strategy, ask):
    iterator = iter(distributed(strategy))
    f = tf.function(lambda: strategy.run(tf.square, args=(ask(iterator),)))
    assert parts(f()) == [[0, 1], [4, 9]]
    assert parts(f()) == [[16, 25], [36, 49]]


def test_a_dataset_in_a_function_is_iterated_each_time(strategy):
    @tf.function
    def total(dataset):
        found = tf.constant(0)
        for x in dataset:
            found += strategy.reduce("SUM", strategy.run(tf.square, args=(x,)), axis=0)
        return found

    assert int(total(distributed(strategy))) == int(total(distributed(strategy))) == 140


def test_a_plain_dataset_is_driven_too():
    dataset = tf.data.Dataset.range(3)
    rows = [0]

    @tf.function
    def total():
        rows[0] += 1
        return sum(int(x) for x in dataset)

    assert [total(), total()] == [3, 3]
    folded = tf.function(lambda: dataset.reduce(np.int64(0), lambda s, x: s + x))
    assert int(folded()) == 3


def test_loops_end_by_break_and_return(strategy):
    @tf.function
    def first_above(iterator, limit):
        for i in tf.range(5):
            total = strategy.reduce("SUM", next(iterator), axis=0)
            if total > limit:
                return i
        return -1

    @tf.function
    def total_of(iterator, steps):
        total = 0.0
        for i in tf.range(steps):
            total += strategy.reduce("SUM", next(iterator), axis=0)
            if i == 1:
                break
        return total

    assert int(first_above(iter(distributed(strategy, 20)), 20)) == 1
    rest = iter(distributed(strategy, 20))
    whole = [float(strategy.reduce("SUM", x, axis=0)) for x in distributed(strategy, 20)]
    assert float(total_of(rest, tf.constant(5))) == sum(whole[:2])
    assert float(strategy.reduce("SUM", next(rest), axis=0)) == whole[2]


def test_a_branch_on_a_tensor_is_driven_with_one_warning_at_its_line():
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        v.assign_add(1.0)
        if x > 0:
            return x
        return -x

    with pytest.warns(UserWarning, match="f runs as plain Python") as caught:
        assert f(tf.constant(-2.0)).item() == 2.0
    assert v.numpy() == 1.0
    assert caught[0].filename.endswith("test_function.py")
    assert caught[0].lineno == f.python_function.__code__.co_firstlineno + 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(tf.constant(3.0)).item() == 3.0
        assert f(tf.constant([3.0])).tolist() == [3.0]
    assert v.numpy() == 3.0


def test_a_driven_function_inside_another_drives_that_too(strategy):
    iterator = iter(distributed(strategy))
    inner = tf.function(lambda: next(iterator))
    outer = tf.function(lambda: (inner(), 1)[0])
    assert parts(inner()) == [[0, 1], [2, 3]]
    assert parts(outer()) == [[4, 5], [6, 7]]


def test_a_function_that_cannot_gather_uneven_parts_stays_compiled_for_others(strategy):
    def gathered(x):
        return tf.distribute.get_replica_context().all_gather(x, axis=0)

    body = counting(gathered)
    f = tf.function(lambda x: strategy.run(body, args=(x,)))
    for _ in range(2):
        for batch in distributed(strategy, 7):
            f(batch)
    runs = body.runs
    for batch in distributed(strategy, 4):
        f(batch)
    assert body.runs == runs


@pytest.mark.parametrize("value", [{1, 2}, bytearray(b"a")])
def test_what_may_change_is_no_argument(value):
    f = tf.function(len)
    with pytest.raises(TypeError, match=r"which may change[\s\S]*test_function"):
        f(value)
    assert f(frozenset({1, 2})).item() == 2


def test_what_was_passed_in_a_tree_may_be_returned():
    f = tf.function(lambda tree: {"w": tree["w"] + 1, "activation": tree["activation"]})
    model = {"w": tf.constant(1.0), "activation": abs}
    for _ in range(3):
        model = f(model)
    assert model["w"].item() == 4.0
    assert model["activation"] is abs
    assert f({"w": tf.constant(1.0), "activation": max})["activation"] is max
    with pytest.raises(TypeError, match="returned <built-in function min>"):
        tf.function(lambda x: (x, min))(tf.constant(1.0))


def test_an_array_that_is_traced_says_why_it_has_no_numpy():
    with pytest.raises(AttributeError, match="no attribute numpy") as caught:
        tf.function(lambda x: x.numpy())(tf.constant(1.0))
    assert any("The function is being traced" in note for note in caught.value.__notes__)
