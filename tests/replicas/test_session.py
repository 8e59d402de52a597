"""What a strategy keeps. tests/cluster/test_failures.py restores variables after a failed step, with processes."""

import gc
import weakref

import pytest

import evenfeed as tf
from evenfeed.replicas.session import LastStep, Session


class Result:
    """A fake result of a step."""

    def __init__(self, error=None):
        self.error, self.waits = error, 0

    def block_until_ready(self):
        self.waits += 1
        if self.error is not None:
            raise self.error


@pytest.fixture
def variable():
    return tf.Variable(2.0)


def started(variable, result):
    step = LastStep()
    before = variable.held
    variable.assign(3.0)
    step.start([(variable, before)], result)
    return step


def test_variables_keep_the_values_of_a_successful_step(variable):
    result = Result()
    step = started(variable, result)
    step.settle()
    step.settle()
    step.rescue()
    assert variable.numpy() == 3.0
    assert result.waits == 1


def test_a_failed_step_raises_and_restores_the_variables(variable):
    step = started(variable, Result(ConnectionError("worker 1")))
    with pytest.raises(ConnectionError, match="worker 1"):
        step.settle()
    assert variable.numpy() == 2.0
    variable.assign(5.0)
    step.settle()
    assert variable.numpy() == 5.0


def test_a_rescue_restores_the_variables_without_raising(variable):
    started(variable, Result(ConnectionError("worker 1"))).rescue()
    assert variable.numpy() == 2.0


def test_settling_before_the_first_step_does_nothing():
    LastStep().settle()
    LastStep().rescue()


def test_a_program_is_made_once_and_the_oldest_is_dropped():
    session, made = Session(), []

    def make(key):
        return session.program(key, lambda: made.append(key) or (lambda: key))

    assert make("a") is make("a")
    for number in range(256):
        assert make(number)() == number
    assert made == ["a", *range(256)]
    make("a")
    assert made[-1] == "a"


def test_strategies_share_no_state():
    one, other = (tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]) for _ in range(2))
    assert one.extended.replicas.session is not other.extended.replicas.session


def test_a_strategy_ends_with_its_last_reference():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    value = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", 1.0))
    strategy.reduce("SUM", value, axis=None)
    session = weakref.ref(strategy.extended.replicas.session)
    del strategy, value
    gc.collect()
    assert session() is None
