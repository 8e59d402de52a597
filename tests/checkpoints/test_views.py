"""What `CheckpointView` and `TrackableView` say of the objects in a checkpoint and in a program."""

import numpy as np
import pytest

import evenfeed as tf


def model(*names):
    made = tf.Module()
    for name in names:
        setattr(made, name, tf.Variable(1.0, name=name))
    return made


def test_the_difference_of_a_checkpoint_and_a_program_has_three_parts(tmp_path):
    shared = model("v")
    saved = tf.train.Checkpoint(a=model("v", "w"), b=[tf.Variable(0.0), shared], c=shared)
    view = tf.train.CheckpointView(saved.save(tmp_path / "ckpt"))
    assert view.children(0) == {"a": 1, "b": 2, "c": 3, "save_counter": 4}
    assert view.children(2) == {"0": 7, "1": 3}
    assert view.descendants() == list(range(9))

    here = tf.train.Checkpoint(a=model("v", "x"), b=[tf.Variable(0.0)])
    found, only_saved, only_here = view.diff(here)
    assert found.keys() == {0, 1, 2, 5, 7}
    assert view.match(here).keys() == found.keys()
    assert found[5] is here.a.v
    assert only_saved == [3, 4, 6, 8]
    assert [id(one) for one in only_here] == [id(here.a.x)]


def test_objects_of_a_program_are_listed_once_and_arrays_as_they_are():
    shared, array = tf.Variable(1.0), np.arange(3)
    root = tf.train.Checkpoint(array=array, first=[shared], second=shared)
    view = tf.train.TrackableView(root)
    assert view.root is root
    assert list(view.children(root)) == ["array", "first", "second"]
    found = view.descendants()
    assert [id(one) for one in found] == list(map(id, [root, array, root.first, shared]))


def test_what_cannot_be_saved_has_no_view(tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(tmp_path / "ckpt")
    for look in (tf.train.TrackableView, tf.train.CheckpointView(path).match):
        with pytest.raises(ValueError, match="Expected an object that a Checkpoint can save"):
            look(object())
    with pytest.raises(tf.errors.NotFoundError):
        tf.train.CheckpointView(tmp_path / "none")


def averaged(count, value):
    variables = [tf.Variable(value) for _ in range(count)]
    averages = tf.train.ExponentialMovingAverage(0.5)
    return variables, averages


@pytest.mark.parametrize("compiled", [False, True])
def test_moving_averages_are_restored_before_and_after_they_exist(tmp_path, compiled):
    variables, averages = averaged(2, 2.0)
    averages.apply(variables)
    variables[1].assign(6.0)
    averages.apply(variables)
    path = tf.train.Checkpoint(averages=averages).save(tmp_path / "ckpt")

    variables, averages = averaged(2, 8.0)
    apply = tf.function(averages.apply) if compiled else averages.apply
    status = tf.train.Checkpoint(averages=averages).restore(path)
    apply(variables)
    assert [float(averages.average(v)) for v in variables] == [5.0, 6.0]
    status.assert_consumed()
    apply(variables)
    tf.train.Checkpoint(averages=averages).restore(path).assert_consumed()
    assert [float(averages.average(v)) for v in variables] == [2.0, 4.0]
