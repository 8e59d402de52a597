"""Variables and arrays that change after a function was passed to a dataset: which values does the function see?"""

import numpy as np

STEP = 1


def _lists(dataset):
    return [np.asarray(element).tolist() for element in dataset]


def _stepped(x):
    return x + STEP


def _called(tf, function, x):
    return tf.numpy_function(function, [x], np.int64)


def variables_that_change_later(tf, ask):
    """Pass functions that use variables, and assign other values before the datasets are read."""
    global STEP  # noqa: PLW0603 - what changes
    range_, from_tensors = tf.data.Dataset.range, tf.data.Dataset.from_tensors
    step, scale, table, held, factor = 1, 2.0, [1], np.array([1.0]), 2

    def called(x):
        return x + step

    made = {
        "map": range_(3).map(lambda x: x + step),
        "map, compiled": range_(3).map(lambda x: tf.sin(tf.cast(x, tf.float64)) * scale),
        "map, an if": range_(3).map(lambda x: x + step if x >= 0 else x),
        "map, a global": range_(3).map(_stepped),
        "map, a global and an if": range_(3).map(lambda x: x + STEP if x >= 0 else x),
        "map, a list": range_(3).map(lambda x: x + table[0]),
        "map, an array": range_(3).map(lambda x: tf.cast(x, tf.float64) + held),
        "map, an array, compiled": range_(3).map(lambda x: tf.cos(tf.cast(x, tf.float64)) * held),
        "map of batches": range_(3).batch(2).map(lambda x: tf.exp(tf.cast(x, tf.float64)) * scale),
        "filter": range_(3).filter(lambda x: x >= step),
        "flat_map": range_(3).flat_map(lambda _: range_(step)),
        "flat_map, inside": range_(3).flat_map(lambda _: range_(2).map(lambda x: x + step)),
        "interleave": range_(3).interleave(lambda n: range_(2).map(lambda x: x * n + step)),
        "group_by_window": range_(4).group_by_window(
            lambda x: x % 2, lambda _, group: group.batch(step), window_size=2
        ),
        "scan": range_(4).scan(np.int64(0), lambda s, x: (s + step, s + x)),
        "take_while": range_(9).take_while(lambda x: x <= step),
        "py_function": range_(3).map(
            lambda x: tf.py_function(lambda y: y + step, [x], tf.int64)
        ),
        "numpy_function, by a helper": range_(3).map(lambda x: _called(tf, called, x)),
        "numpy_function, and a factor": range_(3).map(
            lambda x: tf.numpy_function(lambda y: y + step, [x], np.int64) * factor
        ),
        "text": from_tensors("a").map(lambda s: tf.strings.join([s, str(step)])),
    }  # fmt: skip
    step, scale, table[0], held[0], STEP, factor = 3, 0.0, 100, 100.0, 100, 100
    found = {label: ask(lambda one=one: _lists(one)) for label, one in made.items()}
    STEP = 1
    return found


def variables_of_loops(tf, ask):
    """Pass functions that use the variable of a loop."""

    def joined(make):
        parts = []
        for k in range(1, 4):
            parts.append(make(k, lambda x: x * k if x >= 0 else x))  # noqa: B023, PERF401 - asked
        return _lists(parts[0].concatenate(parts[1]).concatenate(parts[2]))

    numbers = tf.data.Dataset.range(3)

    def inner(_, function):
        return numbers.flat_map(lambda x: tf.data.Dataset.from_tensors(function(x)))

    return {
        "map": ask(lambda: joined(lambda _, function: numbers.map(function))),
        "flat_map": ask(lambda: joined(inner)),
    }
