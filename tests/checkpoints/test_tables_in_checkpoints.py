"""Tables that change, in a checkpoint."""

import numpy as np
import pytest

import evenfeed as tf


def _table(key_dtype, value_dtype, default, **entries):
    table = tf.lookup.experimental.MutableHashTable(key_dtype, value_dtype, default)
    if entries:
        table.insert(**entries)
    return table


@pytest.mark.parametrize(
    ("dtypes", "default", "keys", "values"),
    [
        ((tf.string, tf.int64), -1, ["a", b"\xff\x00"], [1, 2**40]),
        ((tf.int64, tf.string), "?", [2**60, -1], ["x", ""]),
        ((tf.int32, tf.float32), [0.0, 0.0], [1, 2], [[np.nan, 0.1], [-0.0, np.inf]]),
        ((tf.string, tf.bool), False, ["yes"], [True]),
        ((tf.string, tf.int64), -1, [], []),
    ],
    ids=["text", "numbers", "vectors", "bools", "empty"],
)
def test_a_checkpoint_restores_the_keys_and_values_of_a_table(
    tmp_path, dtypes, default, keys, values
):
    keys, values = np.array(keys, dtypes[0]), np.array(values, dtypes[1])
    path = tf.train.Checkpoint(t=_table(*dtypes, default, keys=keys, values=values)).save(
        tmp_path / "c"
    )
    table = _table(*dtypes, default)
    tf.train.Checkpoint(t=table).restore(path).assert_consumed()
    assert int(table.size()) == len(keys)
    np.testing.assert_array_equal(table.lookup(keys), values)


def test_restoring_removes_the_other_keys_and_keeps_maps_that_look_up(tmp_path):
    saved = _table(tf.int64, tf.int64, -1, keys=[1], values=[10])
    path = tf.train.Checkpoint(t=saved).save(tmp_path / "c")
    table = _table(tf.int64, tf.int64, -1, keys=[0, 1], values=[5, 6])
    found = tf.data.Dataset.range(2).map(table.lookup)
    assert [int(x) for x in found] == [5, 6]
    tf.train.Checkpoint(t=table).restore(path)
    assert [int(x) for x in found] == [-1, 10]


def test_a_table_in_a_module_and_a_dense_table_are_saved(tmp_path):
    module = tf.Module()
    module.table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, 8, 9)
    module.table.insert([1], [5])
    path = tf.train.Checkpoint(m=module).save(tmp_path / "c")
    module.table.remove([1])
    tf.train.Checkpoint(m=module).restore(path).assert_consumed()
    assert module.table.lookup([1]).tolist() == [5]


def test_a_table_of_another_dtype_is_not_restored(tmp_path):
    path = tf.train.Checkpoint(t=_table(tf.string, tf.int64, -1)).save(tmp_path / "c")
    with pytest.raises(
        ValueError, match="The checkpoint has a table of string and int64 with values of shape"
    ):
        tf.train.Checkpoint(t=_table(tf.string, tf.float32, 0.0)).restore(path)


def test_a_prefix_may_end_with_a_slash(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    path = checkpoint.save(f"{tmp_path}/run/")
    assert path == f"{tmp_path}/run/-1"
    assert tf.train.latest_checkpoint(tmp_path / "run") == path


def test_saving_inside_a_function_is_not_implemented(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    checkpoint.save(tmp_path / "c")
    with pytest.raises(NotImplementedError, match="call it outside"):
        tf.function(lambda: checkpoint.save(tmp_path / "c"))()
    assert int(checkpoint.save_counter) == 1
