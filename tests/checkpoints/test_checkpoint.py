"""What a Checkpoint saves of objects, arrays and pytrees, and how it restores them."""

import copy
import gc
import logging
import os
import pickle
import re
import weakref
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import evenfeed as tf


class Layer(tf.Module):
    """A module whose variable is made at the first call."""

    def __call__(self, x):
        if "w" not in vars(self):
            self.w = tf.Variable([0.0, 0.0], name="w")
        return x * self.w


class Pair(NamedTuple):
    left: object
    right: object


def saved(tmp_path, **objects):
    return tf.train.Checkpoint(**objects).save(tmp_path / "ckpt")


def test_an_optax_state_is_replaced_by_the_saved_one(tmp_path):
    params = {"w": jnp.arange(3.0), "b": jnp.zeros(()), "none": {}}
    optimizer = optax.adam(0.1)
    state = optimizer.init(params)
    updates, state = optimizer.update(params, state)
    path = saved(tmp_path, params=optax.apply_updates(params, updates), state=state, epoch=7)
    fresh = {"w": jnp.zeros(3), "b": jnp.ones(()), "none": {}}
    checkpoint = tf.train.Checkpoint(params=fresh, state=optimizer.init(fresh), epoch=0)
    checkpoint.restore(path).assert_consumed()
    assert type(checkpoint.state) is type(state)
    assert jax.tree.structure(checkpoint.state) == jax.tree.structure(state)
    jax.tree.map(np.testing.assert_array_equal, checkpoint.state, state)
    assert checkpoint.epoch == 7
    assert type(checkpoint.epoch) is int
    assert fresh["w"].tolist() == [0, 0, 0], "the user's own tree does not change"


def test_every_dtype_and_empty_arrays_come_back(tmp_path):
    kinds = [
        "bool",
        "int8",
        "uint32",
        "float16",
        "bfloat16",
        "float32",
        "complex64",
        "float8_e4m3fn",
    ]
    arrays = {kind: jnp.ones((2, 3), kind) for kind in kinds}
    arrays |= {"empty": jnp.zeros((0, 4)), "wide": np.array([2**60]), "half": np.float64(0.5)}
    arrays |= {"no rows": np.zeros((3, 0), np.int64)}
    checkpoint = tf.train.Checkpoint(arrays=jax.tree.map(jnp.zeros_like, arrays))
    checkpoint.arrays |= {name: np.zeros_like(arrays[name]) for name in ("wide", "half", "no rows")}
    checkpoint.arrays["half"] = np.float64(0)
    checkpoint.restore(saved(tmp_path, arrays=arrays)).assert_consumed()
    for name, array in arrays.items():
        found = checkpoint.arrays[name]
        assert found.dtype == array.dtype
        assert isinstance(found, jax.Array) == isinstance(array, jax.Array)
        np.testing.assert_array_equal(found, array)


def test_a_checkpoint_without_arrays_can_be_saved(tmp_path):
    iterator = iter(tf.data.Dataset.range(3))
    next(iterator)
    path = tf.train.Checkpoint(data=iterator).write(tmp_path / "alone")
    again = iter(tf.data.Dataset.range(3))
    tf.train.Checkpoint(data=again).read(path).assert_consumed()
    assert int(next(again)) == 1


def test_random_keys_are_restored_as_keys(tmp_path):
    path = saved(tmp_path, key=jax.random.split(jax.random.key(3), 2))
    checkpoint = tf.train.Checkpoint(key=jax.random.split(jax.random.key(0), 2))
    checkpoint.restore(path).assert_consumed()
    expected = jax.random.uniform(jax.random.split(jax.random.key(3), 2)[1])
    assert jax.random.uniform(checkpoint.key[1]) == expected


def test_an_array_and_a_variable_are_stored_alike(tmp_path):
    step = tf.Variable(0)
    path = saved(tmp_path, step=jnp.array(5, jnp.int32))
    tf.train.Checkpoint(step=step).restore(path).assert_consumed()
    assert int(step) == 5


def test_a_sharded_array_keeps_its_sharding(tmp_path):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    sharding = strategy.sharding("replica")
    array = jax.device_put(jnp.arange(8.0), sharding)
    checkpoint = tf.train.Checkpoint(x=jax.device_put(jnp.zeros(8), sharding))
    checkpoint.restore(saved(tmp_path, x=array)).assert_consumed()
    assert checkpoint.x.sharding == sharding
    assert checkpoint.x.tolist() == list(range(8))


def test_results_of_replicas_are_restored_into_the_arrays_of_a_new_program(tmp_path):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    @tf.function
    def step(params):
        return strategy.run(
            lambda p: tf.distribute.get_replica_context().all_reduce("SUM", p), (params,)
        )

    params = step({"w": jnp.arange(2.0)})
    path = saved(tmp_path, params=params)
    checkpoint = tf.train.Checkpoint(params={"w": jnp.zeros(2)})
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.params["w"].tolist() == [0, 2]
    other = tf.train.Checkpoint(params=step(params))
    other.restore(path).assert_consumed()
    assert isinstance(other.params["w"], tf.distribute.Mirrored)
    assert [x.tolist() for x in other.params["w"].values] == [[0, 2]] * 2
    assert other.params["w"].array.sharding == params["w"].array.sharding


def test_a_tree_of_another_structure_is_rejected(tmp_path):
    path = saved(tmp_path, state={"a": jnp.ones(2), "b": jnp.ones(2)})
    with pytest.raises(
        ValueError, match=r"'state' have another structure .* lacks \['c'\] and has \['b'\]"
    ):
        tf.train.Checkpoint(state={"a": jnp.ones(2), "c": jnp.ones(2)}).restore(path)
    with pytest.raises(
        ValueError,
        match=re.escape("\"state['b']\" has shape (3,), but the checkpoint has shape (2,)"),
    ):
        tf.train.Checkpoint(state={"a": jnp.ones(2), "b": jnp.ones(3)}).restore(path)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="dtype int32, but the checkpoint has float32"
    ):
        tf.train.Checkpoint(state={"a": jnp.ones(2), "b": jnp.ones(2, jnp.int32)}).restore(path)


def test_arrays_beside_variables_are_rejected(tmp_path):
    with pytest.raises(ValueError, match="'parts' has both arrays and objects"):
        tf.train.Checkpoint(parts={"v": tf.Variable(1), "inner": [jnp.ones(2)]})
    checkpoint = tf.train.Checkpoint(parts=[tf.Variable(1)])
    checkpoint.parts.append(np.ones(2))
    with pytest.raises(ValueError, match="pass the arrays as an attribute of their own"):
        checkpoint.save(tmp_path / "ckpt")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "'a' cannot be saved"),
        (print, "'a' cannot be saved"),
        (np.array(["text"]), "'a' cannot be saved"),
        ({"x": 1.0, "y": "text"}, "'a' cannot be saved"),
        (
            tf.data.Dataset.range(3),
            r"'a' is a Dataset, which has no position[\s\S]*pass its iterator",
        ),
    ],
)
def test_what_cannot_be_saved_is_rejected_at_once(value, text):
    with pytest.raises(ValueError, match=text):
        tf.train.Checkpoint(a=value)


def test_a_failed_restore_changes_no_variable(tmp_path, caplog):
    path = saved(tmp_path, a=tf.Variable(1.0), b=tf.Variable([1.0]))
    a, b = tf.Variable(0.0, name="a"), tf.Variable([0.0, 0.0], name="b")
    with pytest.raises(
        ValueError, match=r"'b:0' has shape \(2,\), but the checkpoint has a value of shape \(1,\)"
    ):
        tf.train.Checkpoint(a=a, b=b).restore(path)
    gc.collect()
    assert float(a) == 0
    assert not caplog.messages, "the error says it all"


def test_integers_of_another_width_are_restored_if_they_fit(tmp_path):
    with jax.enable_x64(True):
        path = saved(tmp_path, small=tf.Variable(7, dtype=tf.int64))
        large = saved(tmp_path / "b", large=tf.Variable(2**40, dtype=tf.int64))
    small = tf.Variable(0)
    tf.train.Checkpoint(small=small).restore(path).assert_consumed()
    assert int(small) == 7
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"do not fit into int32[\s\S]*JAX_ENABLE_X64=1"
    ):
        tf.train.Checkpoint(large=tf.Variable(0)).restore(large)


def test_a_sum_of_integers_over_replicas_keeps_its_remainder(tmp_path):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    kind = {
        "synchronization": tf.VariableSynchronization.ON_READ,
        "aggregation": tf.VariableAggregation.SUM,
    }
    path = saved(tmp_path, count=tf.Variable(7))
    with strategy.scope():
        count = tf.Variable(0, **kind)
    tf.train.Checkpoint(count=count).restore(path).assert_consumed()
    assert int(count.read_value()) == 7
    assert sorted(map(int, strategy.experimental_local_results(count))) == [3, 4]


def test_a_restored_variable_is_used_by_a_function_that_is_compiled_already(tmp_path):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = tf.Variable(1.0)
    read = tf.function(lambda: strategy.run(lambda: v * 2))
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.save(tmp_path / "ckpt")
    v.assign(5.0)
    read()
    checkpoint.restore(path)
    assert [float(x) for x in strategy.experimental_local_results(read())] == [2, 2]


@pytest.mark.parametrize("how", ["plain", "numpy", "distributed", "array"])
def test_an_iterator_goes_on_where_it_was(tmp_path, how):
    dataset = tf.data.Dataset.range(40).shuffle(40, seed=3).batch(4)

    def start():
        if how in ("plain", "numpy"):
            return iter(dataset) if how == "plain" else dataset.as_numpy_iterator()
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        steps = strategy.experimental_distribute_dataset(dataset)
        return iter(steps) if how == "distributed" else steps.as_array_iterator()

    def rows(element):
        return np.asarray(getattr(element, "array", element)).tolist()

    iterator = start()
    checkpoint = tf.train.Checkpoint(data=iterator)
    next(iterator)
    path = checkpoint.save(tmp_path / "ckpt")
    expected = [rows(element) for element in iterator]
    again = start()
    tf.train.Checkpoint(data=again).restore(path).assert_consumed()
    assert [rows(element) for element in again] == expected
    assert len(expected) == 9


def test_an_iterator_over_another_dataset_is_rejected(tmp_path):
    path = saved(tmp_path, data=iter(tf.data.Dataset.range(5)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="dataset"):
        tf.train.Checkpoint(data=iter(tf.data.Dataset.range(6))).restore(path)


def test_variables_that_are_made_later_get_their_values(tmp_path):
    model = Layer()
    model(1.0)
    model.w.assign([3.0, 4.0])
    path = saved(tmp_path, model=model, state=jnp.arange(2))
    later = Layer()
    checkpoint = tf.train.Checkpoint(model=later)
    status = checkpoint.restore(path)
    with pytest.raises(AssertionError, match="no object of the program has taken: state, model/w"):
        status.assert_consumed()
    assert later(2.0).tolist() == [6, 8]
    checkpoint.state = jnp.zeros(2, jnp.int32)
    assert checkpoint.state.tolist() == [0, 1]
    status.assert_consumed()


def test_they_do_so_in_a_compiled_function_on_replicas_and_without_the_checkpoint(tmp_path):
    model = Layer()
    model(1.0)
    model.w.assign([3.0, 4.0])
    path = saved(tmp_path, model=model)
    for compiled in (False, True):
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        later = Layer()
        tf.train.Checkpoint(model=later).restore(path).expect_partial()
        gc.collect()
        call = tf.function(lambda later=later, strategy=strategy: strategy.run(later, args=(2.0,)))
        result = call() if compiled else strategy.run(later, args=(2.0,))
        assert [x.tolist() for x in strategy.experimental_local_results(result)] == [[6, 8]] * 2
        assert [x.tolist() for x in later.w.values] == [[3, 4]] * 2


def test_entries_of_lists_and_dicts_are_restored_when_they_are_added(tmp_path):
    model = tf.Module()
    model.layers = [tf.Variable(float(number)) for number in range(4)]
    model.named = {"a": tf.Variable(10.0), "b": tf.Variable(11.0)}
    path = saved(tmp_path, model=model)
    later = tf.Module()
    later.layers, later.named = [], {}
    status = tf.train.Checkpoint(model=later).restore(path)
    later.layers.append(tf.Variable(-1.0))
    later.layers.extend([tf.Variable(-1.0)])
    later.layers += [tf.Variable(-1.0)]
    later.named["a"] = tf.Variable(-1.0)
    later.named.update(b=tf.Variable(-1.0))
    twin = copy.deepcopy(later)
    assert type(twin.layers) is list
    assert [float(v) for v in later.layers] == [0, 1, 2]
    assert [float(v) for v in later.named.values()] == [10, 11]
    later.layers.append(tf.Variable(-1.0))
    status.assert_consumed()
    assert [float(v) for v in pickle.loads(pickle.dumps(later)).layers] == [0, 1, 2, 3]


def test_saving_first_restores_what_was_appended_unseen(tmp_path):
    path = saved(tmp_path, parts=[tf.Variable(1.0), [tf.Variable(2.0), tf.Variable(3.0)]])
    inner = [tf.Variable(0.0)]
    checkpoint = tf.train.Checkpoint(parts=[tf.Variable(0.0), inner])
    checkpoint.restore(path)
    inner.append(tf.Variable(0.0))
    again = checkpoint.save(tmp_path / "again")
    assert tf.train.load_variable(again, "parts/1/1/.ATTRIBUTES/VARIABLE_VALUE") == 3


def test_a_later_restore_wins(tmp_path):
    first, second = saved(tmp_path, v=tf.Variable(1.0)), saved(tmp_path / "b", v=tf.Variable(2.0))
    checkpoint = tf.train.Checkpoint()
    checkpoint.restore(first).expect_partial()
    checkpoint.restore(second)
    checkpoint.v = tf.Variable(0.0)
    assert float(checkpoint.v) == 2


def test_a_pending_restore_keeps_no_object_alive(tmp_path):
    path = saved(tmp_path, model=Layer(), more=tf.Variable(1.0))
    model = Layer()
    checkpoint = tf.train.Checkpoint(model=model)
    checkpoint.restore(path).expect_partial()
    gone = weakref.ref(model)
    del model, checkpoint
    gc.collect()
    assert gone() is None


def test_values_that_nobody_took_are_reported(tmp_path, caplog):
    path = saved(tmp_path, a=tf.Variable(1.0), b=tf.Variable(1.0))
    with caplog.at_level(logging.WARNING, "evenfeed"):
        tf.train.Checkpoint(a=tf.Variable(0.0)).restore(path).expect_partial()
        gc.collect()
        assert not caplog.messages
        tf.train.Checkpoint(a=tf.Variable(0.0)).restore(path)
        gc.collect()
    assert re.search(r"ckpt-1 were not restored: b\. .*expect_partial\(\)", caplog.text)


def test_one_saved_object_for_two_is_reported(tmp_path, caplog):
    v = tf.Variable(1.0)
    path = saved(tmp_path, a=v, b=v)
    first, second = tf.Variable(0.0), tf.Variable(0.0)
    with caplog.at_level(logging.WARNING, "evenfeed"):
        tf.train.Checkpoint(a=first, b=second).restore(path)
    assert "the program has two there" in caplog.text
    assert (float(first), float(second)) == (1, 0)


def test_it_cannot_be_saved_inside_a_step(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with pytest.raises(RuntimeError, match=r"saved inside evenfeed.function or strategy.run"):
        strategy.run(lambda: checkpoint.write(tmp_path / "ckpt"))


def test_a_checkpoint_of_tensorflow_is_explained(tmp_path):
    (tmp_path / "ckpt-1.index").touch()
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "ckpt-1"\n')
    path = tf.train.latest_checkpoint(tmp_path)
    assert path == os.path.join(tmp_path, "ckpt-1")
    with pytest.raises(
        tf.errors.UnimplementedError, match=r"TensorFlow wrote .*ckpt-1[\s\S]*numpy.savez"
    ):
        tf.train.Checkpoint(v=tf.Variable(1.0)).restore(path)


def test_a_folder_that_is_no_checkpoint_is_explained(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    with pytest.raises(
        tf.errors.NotFoundError, match=r"not a checkpoint[\s\S]*latest_checkpoint\(folder\)"
    ):
        checkpoint.restore(tmp_path)
    with pytest.raises(
        tf.errors.UnimplementedError, match="mounted file systems, but got gs://bucket"
    ):
        checkpoint.save("gs://bucket/ckpt")
    with pytest.raises(TypeError, match="must be a path, but got 3"):
        checkpoint.save(3)
