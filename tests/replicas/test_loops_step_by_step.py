"""What is said of a loop that does not run as one program, and lambdas that a loop calls."""

import inspect
import warnings

import pytest

import evenfeed as tf

STRATEGY = tf.distribute.MirroredStrategy(["CPU:0"])
ROWS = STRATEGY.experimental_distribute_dataset(
    tf.data.Dataset.range(1, 9, output_type=tf.int32).batch(2)
)

total, twice = lambda x: STRATEGY.reduce("SUM", x, axis=None), lambda x, by=2: by * x  # fmt: skip


def step(rows):
    return tf.reduce_sum(rows)


@tf.function
def collecting(iterator):
    found = tf.TensorArray(tf.int32, 4)
    for number in tf.range(4):
        rows = next(iterator)
        found = found.write(number, STRATEGY.reduce("SUM", STRATEGY.run(step, (rows,)), axis=None))
    return found.stack()


@tf.function
def assigning(iterator, kept):
    for _ in tf.range(4):
        kept["last"] = STRATEGY.run(step, (next(iterator),))


@tf.function
def calling_lambdas(iterator):
    found = tf.constant(0)
    for _ in tf.range(4):
        found += twice(total(STRATEGY.run(step, (next(iterator),))))
    return found


def line_of(function, text):
    lines, first = inspect.getsourcelines(function.python_function)
    return first + next(number for number, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("function", "arguments", "why"),
    [
        (collecting, (), "a variable of the loop is a TensorArray"),
        (assigning, ({},), "changes a Python object"),
    ],
    ids=["TensorArray", "dict"],
)
def test_a_warning_about_a_loop_points_at_it(function, arguments, why):
    with pytest.warns(UserWarning, match=why) as caught:
        function(iter(ROWS), *arguments)
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, line_of(function, "in tf.range"))


def test_a_loop_may_call_lambdas_that_share_a_line():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert int(calling_lambdas(iter(ROWS))) == 72
