import functools
import random

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.callsite import Origin
from evenfeed.runtime.functions.purity import RandomStates, generators
from evenfeed.runtime.functions.row_function import trace

HERE = Origin("train.py", 12)
NUMBER = tf.TensorSpec([], tf.int64)
GLOBAL = np.random.default_rng(0)


class Augment:
    def __init__(self):
        self.rng = random.Random(0)
        self.tables = {"a": [np.random.RandomState(0)]}

    def __call__(self, x):
        return x if self.rng.random() < 0.5 else -x

    def method(self, x):
        return x + int(self.tables["a"][0].randint(10))


def coin(x):
    return x if random.random() < 0.5 else -x


def numpy_coin(x):
    return x if np.random.rand() < 0.5 else -x


def global_coin(x):
    return x if GLOBAL.random() < 0.5 else -x


def default_coin(x, rng=np.random.default_rng(1)):  # noqa: B008
    return x if rng.random() < 0.5 else -x


def closed_coin():
    rng = np.random.default_rng(2)

    def inner(x):
        return x if rng.random() < 0.5 else -x

    return lambda x: inner(x) + 0


def our_coin(x):
    return tf.cond(x > 1, lambda: x + tf.cast(tf.random.uniform([]) * 10, tf.int64), lambda: x)


COINS = [
    coin,
    numpy_coin,
    global_coin,
    default_coin,
    closed_coin(),
    our_coin,
    Augment(),
    Augment().method,
    functools.partial(default_coin, rng=random.Random(3)),
]


@pytest.mark.parametrize("function", COINS)
def test_a_draw_is_caught_and_the_line_named(function):
    with pytest.warns(UserWarning, match="draws random numbers") as said:
        found = trace(function, NUMBER, HERE)
    assert (found.is_pure, found.way, found.why) == (
        False,
        "per element",
        "it draws random numbers",
    )
    assert [(w.filename, w.lineno) for w in said] == [("train.py", 12)]


@pytest.mark.filterwarnings("ignore:.*draws random numbers")
def test_a_coin_flip_is_caught_1000_times_of_1000():
    assert sum(not trace(coin, NUMBER, HERE).is_pure for _ in range(1000)) == 1000


def test_a_pure_function_stays_pure_beside_generators():
    rng = np.random.default_rng(0)
    assert trace(lambda x: x + (rng is not None), NUMBER, HERE).is_pure


def test_vectorize_false_needs_no_warning():
    assert not trace(coin, NUMBER, HERE, vectorize=False).is_pure


def test_what_does_not_trace_and_holds_a_generator_is_taken_for_impure():
    rng = np.random.default_rng(0)
    found = trace(lambda x: rng.random() if x > 3 else 0.0, NUMBER, HERE)
    assert (found.way, found.is_pure) == ("per element", False)


def test_looking_moves_nothing():
    before = RandomStates(generators(global_coin))
    assert not before.have_changed()
    GLOBAL.random()
    assert before.have_changed()


@pytest.mark.parametrize(
    "generator",
    [random.Random(0), np.random.default_rng(0), np.random.RandomState(0), random, np.random],
)
def test_what_a_look_drew_is_drawn_again(generator):
    before = RandomStates([generator])
    first = [float(generator.random()) for _ in range(3)]
    before.restore()
    assert not before.have_changed()
    assert [float(generator.random()) for _ in range(3)] == first


@pytest.mark.filterwarnings("ignore:.*draws random numbers")
def test_tracing_leaves_generators_where_they_were():
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    dataset = tf.data.Dataset.range(4).map(lambda x: x * 0.0 + rng.random())
    assert [float(x) for x in dataset] == [np.float32(twin.random()) for _ in range(4)]
