"""Many steps in one compiled program see names that were bound to other objects since the last call."""

import numpy as np
import pytest

import evenfeed as tf


class Holder:
    """Holds what a step reads."""

    def __init__(self, **held):
        vars(self).update(held)

    def step(self, x):
        self.total.assign_add(tf.reduce_sum(x))


class Slotted:
    __slots__ = ("total",)


GLOBAL = HOLDER = SLOTTED = None
SETTINGS = {}


def add_to_global(x):
    GLOBAL.assign_add(tf.reduce_sum(x))


REBOUND = {
    "a global": lambda x: GLOBAL.assign_add(tf.reduce_sum(x)),
    "a global of a helper": lambda x: add_to_global(x * 1),
    "an attribute": lambda x: HOLDER.total.assign_add(tf.reduce_sum(x)),
    "an attribute by its name": lambda x: getattr(HOLDER, "total").assign_add(tf.reduce_sum(x)),  # noqa: B009
    "an attribute of a method's object": lambda x: HOLDER.step(x * 1),
    "an attribute in slots": lambda x: SLOTTED.total.assign_add(tf.reduce_sum(x)),
    "an attribute of the class": lambda x: Holder.shared.assign_add(tf.reduce_sum(x)),
    "an entry": lambda x: SETTINGS["total"][0].assign_add(tf.reduce_sum(x)),
    "a global of a tf.function": tf.function(add_to_global),
}


@pytest.mark.parametrize("name", REBOUND)
def test_steps_update_the_variable_that_a_name_stands_for_now(name):
    global GLOBAL, HOLDER, SLOTTED  # noqa: PLW0603 - the subject
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    HOLDER, SLOTTED = Holder(), Slotted()
    data = tf.data.Dataset.range(11).map(lambda x: tf.cast(x, tf.float32)).batch(2)
    dataset = strategy.experimental_distribute_dataset(data)

    for _ in range(3):
        with strategy.scope():
            total = tf.Variable(0.0)
        GLOBAL = HOLDER.total = SLOTTED.total = Holder.shared = total
        SETTINGS["total"] = [total]
        iterator = iter(dataset)
        while strategy.run_steps(REBOUND[name], iterator, steps=2):
            pass
        assert float(total) == 55.0


def test_steps_read_the_python_values_of_now_and_are_traced_again_only_for_them():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    held = Holder(factor=1.0, other=0, traces=0, total=None)

    def step(x):
        held.traces += 1
        return x * held.factor

    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(12).batch(1))
    iterator = iter(dataset)
    found = []
    for factor in (1.0, 1.0, 2.0, 2.0):
        held.factor, held.other = factor, held.other + 1
        found += [float(x[0]) for x in strategy.run_steps(step, iterator, steps=3)]
    assert found == [0, 1, 2, 3, 4, 5, 12, 14, 16, 18, 20, 22]
    assert held.traces == 2


RATES = np.ones(3, np.float32)


@pytest.mark.parametrize("place", ["a global", "an attribute", "an entry", "a closure"])
def test_steps_read_what_is_in_a_numpy_array_now(place):
    held = Holder(rates=np.ones(3, np.float32), listed=[np.ones(3, np.float32)], traces=0)
    closed = np.ones(3, np.float32)
    arrays = {
        "a global": (lambda: RATES, RATES),
        "an attribute": (lambda: held.rates, held.rates),
        "an entry": (lambda: held.listed[0], held.listed[0]),
        "a closure": (lambda: closed, closed),
    }
    read, array = arrays[place]
    array[:] = 1

    def step(x):
        held.traces += 1
        return x * read()[1]

    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    data = tf.data.Dataset.from_tensor_slices(np.ones(8, np.float32)).batch(1)
    iterator = iter(strategy.experimental_distribute_dataset(data))
    found = []
    for rate in (1, 1, 5, 5):
        array[1] = rate
        found += [float(x[0]) for x in strategy.run_steps(step, iterator, steps=2)]
    assert found == [1, 1, 1, 1, 5, 5, 5, 5]
    assert held.traces <= 2


@pytest.mark.parametrize("count", [100_000, 8 << 20])
def test_steps_read_what_is_in_a_large_numpy_array_now(count):
    held = Holder(rates=np.ones(count, np.float32)[::2], traces=0)

    def step(x):
        held.traces += 1
        return x * held.rates[-1]

    assert two_rates(step, held.rates) == [1, 1, 1, 1, 5, 5, 5, 5]
    assert held.traces <= 2


def test_steps_run_one_by_one_if_their_numpy_arrays_are_too_large_to_compare():
    held = Holder(rates=np.ones(9 << 20, np.float32), others=[np.ones(9 << 20, np.float32)])

    def step(x):
        return x * held.rates[-1] * held.others[0][0]

    with pytest.warns(UserWarning, match="arrays of more than 64 MiB, which may change in place"):
        assert two_rates(step, held.rates) == [1, 1, 1, 1, 5, 5, 5, 5]


def test_an_array_with_many_names_is_compared_once():
    rates = np.ones(9 << 20, np.float32)
    held = Holder(rates=rates, others=[rates, rates], traces=0)

    def step(x):
        held.traces += 1
        return x * held.rates[-1] * held.others[0][0] * held.others[1][0]

    assert two_rates(step, rates) == [1, 1, 1, 1, 5, 5, 5, 5]
    assert held.traces <= 2


def two_rates(step, array):
    """Return the results of steps with the last entry of an array at 1, then at 5."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    data = tf.data.Dataset.from_tensor_slices(np.ones(8, np.float32)).batch(1)
    iterator = iter(strategy.experimental_distribute_dataset(data))
    found = []
    for rate in (1, 1, 5, 5):
        array[-1] = rate
        found += [float(x[0]) for x in strategy.run_steps(step, iterator, steps=2)]
    return found
