import collections
import functools
import json
import math
import random
import threading
from dataclasses import dataclass, field

import jax
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.callsite import Origin
from evenfeed.core.side_effects import Effect, Effects
from evenfeed.runtime.functions.reach.may_draw import may_draw
from evenfeed.runtime.functions.reach.purity import RandomStates, chance_noted, generators
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


class Scale:
    factor = 2

    def __init__(self):
        self.lock = threading.Lock()
        self.table = {"a": np.arange(3), "b": [1.0, "text"]}

    def __call__(self, x):
        with self.lock:
            return self.scaled(x)

    def scaled(self, x):
        return x * self.factor


@dataclass(frozen=True)
class Shift:
    by: int = 1
    more: list[int] = field(default_factory=list)

    def shifted(self, x):
        return x + self.by


def listed(x):
    return np.asarray(x).tolist()


def described(x):
    return np.int64(listed(x) + 1)


COUNTS = tf.data.Dataset.range(3).map(lambda x: x + 1)
DRAWN = tf.data.Dataset.range(3).map(coin, vectorize=False)
VARIABLE = tf.Variable(1.0)

INNOCENT = [
    described,
    Scale(),
    Scale().scaled,
    Shift().shifted,
    functools.partial(described),
    functools.lru_cache(described),
    jax.jit(described),
    jax.vmap(described),
    tf.function(described),
    lambda x: tf.py_function(described, [x], tf.int64),
    lambda x: tf.cast(x, tf.float32) + VARIABLE,
    lambda x: COUNTS.reduce(x, lambda a, b: a + b),
    lambda x: tf.random.uniform([]) + jax.random.uniform(jax.random.key(0)),
    lambda x: sorted(json.loads(x), key=math.sin),
]

GUILTY = [
    *(coin, numpy_coin, global_coin, default_coin, closed_coin(), Augment(), Augment().method),
    random.random,
    np.random.rand,
    functools.partial(random.random),
    functools.lru_cache(coin),
    jax.jit(coin),
    jax.vmap(coin),
    tf.function(coin),
    np.frompyfunc(coin, 1, 1),
    lambda x: list(map(random.gauss, x)),
    lambda x: tf.py_function(numpy_coin, [x], tf.int64),
    lambda x: DRAWN.reduce(x, lambda a, b: a + b),
    lambda x: getattr(np, x)(),
    lambda x: __import__("random").random(),
    lambda x: tf.keras.layers.Dropout(0.5)(x) + 0,
    (coin(x) for x in range(3)).__next__,
    collections.defaultdict(random.random).__getitem__,
]


@pytest.mark.parametrize("function", INNOCENT)
def test_a_function_that_refers_to_no_generator_cannot_draw(function):
    assert not may_draw(function)


@pytest.mark.parametrize("function", GUILTY)
def test_a_function_that_reaches_a_generator_may_draw(function):
    assert may_draw(function)


def test_code_that_imports_or_refers_to_very_much_may_draw():
    def importing(x):
        import random as own

        return x + own.random()

    functions = [lambda x, n=n: x + n for n in range(3000)]
    assert may_draw(importing)
    assert may_draw(lambda x: functions[0](x) + 0)


@pytest.mark.parametrize("element", [np.int64(1), tf.data.Dataset.range(3)])
def test_another_thread_that_draws_meanwhile_is_not_mistaken_for_the_function(element):
    effects = Effects()
    with chance_noted(described, effects, [tf.type_spec_from_value(element)]):
        random.random()  # as another thread does
    assert (Effect.DRAWS in effects) == isinstance(element, tf.data.Dataset)


def test_a_probe_does_not_take_back_what_another_thread_drew():
    asked, drawn = threading.Event(), threading.Event()

    def draw_elsewhere():
        asked.wait()
        random.random()
        drawn.set()

    def probed(x):
        asked.set()
        drawn.wait()
        return x + 1

    random.seed(0)
    elsewhere = threading.Thread(target=draw_elsewhere)
    elsewhere.start()
    found = trace(probed, NUMBER, HERE)
    elsewhere.join()
    assert found.is_pure
    assert random.random() != random.Random(0).random()
