"""A profile is a file that TensorBoard shows, with the names of the steps in it."""

# pyright: basic

import pytest

import evenfeed as tf


def test_a_profile_holds_the_names_of_the_steps(tmp_path):
    with tf.profiler.experimental.Profile(tmp_path):
        for step in range(2):
            with tf.profiler.experimental.Trace("my_train_step", step_num=step, _r=1):
                tf.reduce_sum([step, 2]).numpy()
    (written,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    assert b"my_train_step" in written.read_bytes()


def test_a_profile_of_a_block_that_fails_ends_too(tmp_path):
    with pytest.raises(KeyError), tf.profiler.experimental.Profile(tmp_path):
        raise KeyError
    with pytest.raises(tf.errors.UnavailableError, match="No profile is being recorded"):
        tf.profiler.experimental.stop()
