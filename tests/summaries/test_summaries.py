"""Summaries in training loops, compiled functions and replicas."""

import contextvars
import os

import jax
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.formats.example.example_protos import message_class


@pytest.fixture
def writer(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    yield writer
    writer.close()


def values(folder):
    """Return the tag, the step and the number of each scalar in the only event file of a folder."""
    (name,) = os.listdir(folder)
    records = tf.data.TFRecordDataset(os.path.join(folder, name))
    events = [message_class("Event").FromString(record.item()) for record in records]
    return [
        (value.tag, event.step, np.frombuffer(value.tensor.tensor_content, np.float32).tolist()[0])
        for event in events
        for value in event.summary.value
    ]


@pytest.mark.parametrize("compiles", [False, True])
def test_the_first_replica_writes_once_for_all(writer, tmp_path, compiles):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        step = tf.Variable(0)

    def one(x):
        tf.summary.scalar("x", tf.reduce_sum(x), step=step)
        return x

    def all_replicas(x):
        return strategy.run(one, args=(x,))

    run = tf.function(all_replicas) if compiles else all_replicas
    with writer.as_default():
        for batch in strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4)):
            run(batch)
            step.assign_add(1)
    writer.flush()
    assert values(tmp_path) == [("x", 0, 1.0), ("x", 1, 9.0)]


def test_a_loss_is_written_while_its_gradient_is_computed(writer, tmp_path):
    def loss(x):
        tf.summary.scalar("loss", x**2, step=1)
        return x**2

    with writer.as_default():
        assert jax.jit(jax.grad(loss))(3.0) == 6
    writer.flush()
    assert values(tmp_path) == [("loss", 1, 9.0)]


def test_events_reach_the_file_before_it_is_closed_once_enough_wait(tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path), max_queue=2)
    with writer.as_default():
        for step in range(3):
            tf.summary.scalar("a", step, step=step)
    assert len(values(tmp_path)) == 3
    writer.close()


def test_two_writers_in_one_folder_have_files_of_their_own(tmp_path):
    for _ in range(2):
        tf.summary.create_file_writer(str(tmp_path)).close()
    assert len(os.listdir(tmp_path)) == 2


def test_a_writer_that_is_set_stays_the_default(writer, tmp_path):
    def program():
        writer.set_as_default(step=3)
        tf.summary.scalar("a", 1)
        tf.summary.flush()

    contextvars.copy_context().run(program)  # so that other tests have no default writer
    assert values(tmp_path) == [("a", 3, 1.0)]


def test_what_cannot_be_written_says_what_to_pass(writer):
    with writer.as_default():
        with pytest.raises(ValueError, match=r"fix: pass a mean or a sum, or write a histogram."):
            tf.summary.scalar("a", [1.0, 2.0], step=1)
        with pytest.raises(ValueError, match=r"set_step\(step\) first"):
            tf.summary.scalar("a", 1.0)
        with pytest.raises(ValueError, match=r"data\[None\]"):
            tf.summary.image("a", np.zeros([2, 2, 3]), step=1)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"as_string\(data\)"):
            tf.summary.text("a", [1], step=1)
    writer.close()
    with writer.as_default(), pytest.raises(RuntimeError, match="create another writer"):
        tf.summary.scalar("a", 1.0, step=1)


def test_a_profile_is_made_by_the_profiler():
    with pytest.raises(AttributeError, match=r"profiler\.experimental\.Profile\(logdir\)"):
        tf.summary.trace_on()  # pyright: ignore
