"""Variables are restored after a failed step of several workers; tests/cluster/test_failures.py does it with processes."""

import pytest

import evenfeed as tf
from evenfeed.replicas.session import LastStep


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


def begun(variable, result):
    step = LastStep()
    before = variable.held
    variable.assign(3.0)
    step.start([(variable, before)], result)
    return step


def test_a_step_that_ended_well_stays(variable):
    result = Result()
    step = begun(variable, result)
    step.settle()
    step.settle()
    step.rescue()
    assert variable.numpy() == 3.0
    assert result.waits == 1


def test_a_step_that_failed_is_undone_and_said(variable):
    step = begun(variable, Result(ConnectionError("worker 1")))
    with pytest.raises(ConnectionError, match="worker 1"):
        step.settle()
    assert variable.numpy() == 2.0
    variable.assign(5.0)
    step.settle()
    assert variable.numpy() == 5.0


def test_a_rescue_undoes_in_silence(variable):
    begun(variable, Result(ConnectionError("worker 1"))).rescue()
    assert variable.numpy() == 2.0


def test_before_the_first_step_there_is_nothing_to_settle():
    LastStep().settle()
    LastStep().rescue()
