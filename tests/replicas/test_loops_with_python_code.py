"""A loop over `tf.range` does what its Python code says, also where that code is hidden in objects and decorators."""

import functools
import warnings

import jax
import pytest

import evenfeed as tf

STRATEGY = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
ROWS = tf.data.Dataset.range(16).map(lambda x: tf.cast(x, tf.float32)).batch(4)
SUMS = [6.0, 22.0, 38.0, 54.0]
CALLS: list[str] = []


def total(iterator):
    return STRATEGY.reduce("SUM", STRATEGY.run(tf.reduce_sum, args=(next(iterator),)), axis=None)


def noted(value):
    CALLS.append("noted")
    return value


class Own:
    """Counts how often Python runs a method of it."""

    @property
    def rate(self):
        return noted(1.0)

    def __getattr__(self, name):
        if name != "other":
            raise AttributeError(name)
        return noted(1.0)

    def __radd__(self, other):
        return noted(other)

    def __getitem__(self, key):
        return noted(1.0)

    def __bool__(self):
        return noted(True)

    def __len__(self):
        return noted(1)

    def __iter__(self):
        return iter([noted(1.0)])

    def __enter__(self):
        return noted(self)

    def __exit__(self, *error):
        pass


OWN = Own()


def doubled(function):
    @functools.wraps(function)
    def wrapper(*args):
        return 2 * noted(function(*args))

    return wrapper


@doubled
def half(value):
    return value / 2


def entering(value):
    with OWN:
        return value


BODIES = {
    "a property": lambda loss: loss * OWN.rate,
    "an attribute that is computed": lambda loss: loss * OWN.other,
    "an attribute by its name": lambda loss: loss * getattr(OWN, "rate", 1.0),
    "whether there is an attribute": lambda loss: loss * hasattr(OWN, "rate"),
    "an operator": lambda loss: loss + OWN,
    "an entry": lambda loss: loss * OWN[0],
    "a test": lambda loss: loss if OWN else 0.0,
    "a length": lambda loss: loss * len(OWN),
    "a comprehension": lambda loss: loss * sum(each for each in OWN),
    "a block": entering,
    "a decorated function": half,
    "a key": lambda loss: loss * max([1.0], key=noted),
    "a function for each leaf": lambda loss: tf.nest.map_structure(noted, [loss])[0],
    "a function for each leaf of JAX": lambda loss: jax.tree.map(lambda x: 1 * noted(x), [loss])[0],
}


@pytest.mark.parametrize("name", BODIES)
def test_python_code_runs_in_each_iteration(name):
    body = BODIES[name]

    @tf.function
    def train(iterator):
        found = 0.0
        for _ in tf.range(4):
            found += body(total(iterator))
        return found

    CALLS.clear()
    assert float(train(iter(STRATEGY.experimental_distribute_dataset(ROWS)))) == sum(SUMS)
    assert len(CALLS) == 4


def test_a_decorator_of_a_function_with_a_loop_is_not_lost():
    @doubled
    def train(iterator):
        found = 0.0
        for _ in tf.range(4):
            found += total(iterator)
        return found

    iterator = iter(STRATEGY.experimental_distribute_dataset(ROWS))
    assert float(tf.function(train)(iterator)) == 2 * sum(SUMS)


@pytest.mark.parametrize(
    "make",
    [
        iter,
        lambda values: (each for each in values),
        lambda values: (each for (each,) in zip(values)),
    ],
    ids=["iter", "generator", "zip"],
)
@pytest.mark.parametrize("place", ["a local variable", "an entry", "an attribute", "a for loop"])
def test_an_iterator_of_python_gives_its_next_value_in_each_iteration(make, place):
    held = type("Held", (), {})()
    values = make([1.0, 2.0, 3.0, 4.0])
    held.values, entries = values, {"values": values}

    @tf.function
    def local(iterator):
        found = 0.0
        for _ in tf.range(4):
            found += total(iterator) * next(values)
        return found

    @tf.function
    def entry(iterator):
        found = 0.0
        for _ in tf.range(4):
            found += total(iterator) * next(entries["values"])
        return found

    @tf.function
    def attribute(iterator):
        found = 0.0
        for _ in tf.range(4):
            found += total(iterator) * next(held.values)
        return found

    @tf.function
    def looped(iterator):
        found = 0.0
        for _ in tf.range(4):
            loss = total(iterator)
            for value in held.values:
                found += loss * value
                break
        return found

    run = {"a local variable": local, "an entry": entry, "an attribute": attribute}.get(
        place, looped
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of JAX, about iterators in a tree
        found = float(run(iter(STRATEGY.experimental_distribute_dataset(ROWS))))
    assert found == sum(loss * (at + 1) for at, loss in enumerate(SUMS))


def test_what_a_loop_leaves_behind_is_that_of_its_last_iteration():
    @tf.function
    def train(iterator):
        last = 0.0
        for _ in tf.range(4):
            loss = total(iterator)
            both = [(last := loss * by) for by in (1.0, 2.0)]
            later = lambda: loss + 1  # noqa: B023, E731 - the subject
        return last, both[0], later()

    found = train(iter(STRATEGY.experimental_distribute_dataset(ROWS)))
    assert [float(each) for each in found] == [108.0, 54.0, 55.0]
