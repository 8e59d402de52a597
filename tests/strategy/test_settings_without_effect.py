"""Settings that JAX does not have are remembered, and warn."""

# pyright: basic

import warnings

import pytest

import evenfeed as tf


@pytest.mark.parametrize("kind", ["inter", "intra"])
def test_a_number_of_threads_is_remembered_and_warns(kind):
    change = getattr(tf.config.threading, f"set_{kind}_op_parallelism_threads")
    held = getattr(tf.config.threading, f"get_{kind}_op_parallelism_threads")
    try:
        with pytest.warns(
            UserWarning, match=f"{kind}_op_parallelism_threads=2 has no effect"
        ) as found:
            change(2)
        assert found[0].filename == __file__
        assert held() == 2
    finally:
        change(0)
    assert held() == 0


def test_a_number_of_threads_must_be_whole():
    with pytest.raises(TypeError, match="num_threads"):
        tf.config.threading.set_intra_op_parallelism_threads("two")


def test_logging_of_placement_is_remembered_and_warns():
    try:
        with pytest.warns(UserWarning, match="Device placement is not logged") as found:
            tf.debugging.set_log_device_placement(True)
        assert found[0].filename == __file__
        assert tf.debugging.get_log_device_placement()
    finally:
        with warnings.catch_warnings(action="error"):
            tf.debugging.set_log_device_placement(False)
    assert not tf.debugging.get_log_device_placement()
