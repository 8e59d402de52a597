"""`compat.v1`: what is the same as in TensorFlow 2 is there, and the rest says what to write."""

# pyright: basic

import logging
import operator

import pytest

import evenfeed as tf


@pytest.mark.parametrize("name", ["cast", "concat", "Tensor", "float32", "function", "audio"])
def test_what_means_the_same_is_evenfeeds_own(name):
    assert getattr(tf.compat.v1, name) is getattr(tf, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reduce_mean", r"Use evenfeed\.reduce_mean, which has the arguments of TensorFlow 2"),
        ("log", r"Use evenfeed\.math\.log, which"),
        ("parse_example", r"Use evenfeed\.io\.parse_example, which"),
        ("nn", r"Use evenfeed\.nn, which"),
        ("to_float", r"Use evenfeed\.cast\(x, evenfeed\.float32\)"),
        ("assign_add", r"v\.assign_add"),
        ("reset_default_graph", "no graphs and no collections: leave it out"),
        ("Session", "There are no graphs"),
        ("train.MomentumOptimizer", r"Use evenfeed\.keras\.optimizers\.SGD"),
        ("data.make_initializable_iterator", r"Use iter\(dataset\)"),
        ("disable_v2_behavior", "no graph mode"),
    ],
)
def test_what_differs_says_what_to_write(name, said):
    with pytest.raises(AttributeError, match=said):
        operator.attrgetter(name)(tf.compat.v1)


def test_compat_says_what_it_does_not_have():
    with pytest.raises(AttributeError, match=r"evenfeed\.compat has no 'forward_compatible'"):
        tf.compat.forward_compatible(2020, 1, 1)


def test_messages_go_to_the_logger_at_its_level(caplog):
    log = tf.compat.v1.logging
    before = tf.get_logger().level
    try:
        log.set_verbosity(log.INFO)
        with caplog.at_level(logging.INFO):
            log.debug("unseen")
            log.info("step %d", 3)
            log.log_if(log.INFO, "unseen", False)
            for _ in range(4):
                log.log_first_n(log.WARN, "first", 2)
                log.log_every_n(log.WARN, "every", 3)
        assert log.get_verbosity() == log.INFO
    finally:
        tf.get_logger().setLevel(before)
    texts = [record.getMessage() for record in caplog.records]
    assert texts == ["step 3", "first", "every", "first", "every"]


def test_older_names_of_files_are_those_of_io(tmp_path):
    gfile = tf.compat.v1.gfile
    path = str(tmp_path / "a.txt")
    with gfile.GFile(path, "w") as file:
        file.write("text")
    assert gfile.Exists(path)
    assert gfile.Glob(str(tmp_path / "*")) == [path]
    assert gfile.ListDirectory is tf.io.gfile.listdir
