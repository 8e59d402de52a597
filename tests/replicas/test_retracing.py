"""The log message for functions that are retraced too often."""

import evenfeed as tf


def test_frequent_traces_are_logged_with_the_name_and_what_to_do(caplog):
    @tf.function
    def learn(x):
        return x

    for i in range(4):
        learn(i)
    assert not caplog.messages
    for i in range(4, 12):
        learn(i)
    assert len(caplog.messages) == 2
    assert "5 of the last 5 calls of learn retraced" in caplog.messages[0]
    assert "pass tensors instead of Python numbers" in caplog.messages[0]
    assert "test_retracing.py" in caplog.messages[0]


def test_a_function_defined_in_a_loop_is_logged(caplog):
    for _ in range(5):
        tf.function(lambda x: x + 1)(tf.constant(1))
    assert len(caplog.messages) == 1


def test_rare_traces_are_not_logged(caplog):
    f = tf.function(lambda x: x)
    for i in range(8):
        for _ in range(9):
            f(i)
    assert not caplog.messages
