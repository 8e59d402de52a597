"""Changing some entries of a variable: scatter methods, and assignments to slices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf


def test_a_slice_can_be_added_to_and_is_a_plain_array():
    v = tf.Variable([1.0, 2.0, 3.0])
    part = v[1:]
    assert isinstance(part, jax.Array)
    assert jnp.sum(part) == 5
    assert part.assign_add([1.0, 1.0]) is v
    assert v[0].assign_sub(1.0, read_value=False) is None
    assert v.numpy().tolist() == [0.0, 3.0, 4.0]


def test_a_tensor_says_that_it_cannot_be_assigned():
    with pytest.raises(AttributeError, match=r"only variables, and what variable\[key\] returns"):
        jnp.ones(2).assign([1.0, 2.0])
    with pytest.raises(AttributeError, match="assign"):
        jax.jit(lambda x: x[0].assign(1.0))(jnp.ones(2))


def test_a_slice_at_the_index_of_a_variable_is_assigned_where_the_index_was():
    v, i = tf.Variable([1, 2, 3]), tf.Variable(1)
    part = v[i]
    i.assign(2)
    part.assign(9)
    assert v.numpy().tolist() == [1, 9, 3]


def test_a_compiled_function_changes_slices_at_each_call():
    v = tf.Variable(np.zeros((3, 2), np.float32))

    @tf.function
    def step(i, rows):
        v[i].assign(tf.cast(i, tf.float32))
        v.scatter_add(rows)
        return v[i]

    rows = tf.IndexedSlices([[1.0, 2.0], [1.0, 2.0]], [2, 2])
    assert step(tf.constant(0), rows).tolist() == [0.0, 0.0]
    assert step(tf.constant(2), rows).tolist() == [4.0, 6.0]
    assert v.numpy().tolist() == [[0, 0], [0, 0], [4, 6]]


def test_a_map_may_scatter():
    seen = tf.Variable([0, 0, 0])

    def count(x):
        seen.scatter_add(tf.IndexedSlices(1, [x]))
        return x

    assert list(tf.data.Dataset.from_tensor_slices([2, 0, 2]).map(count)) == [2, 0, 2]
    assert seen.numpy().tolist() == [1, 0, 2]


def test_replicas_with_uneven_parts_scatter_all_their_rows():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = tf.Variable(np.zeros(4, np.float32), aggregation=tf.VariableAggregation.SUM)
    places = tf.data.Dataset.from_tensor_slices([0, 1, 3, 3, 3]).batch(5)

    @tf.function
    def step(batch):
        strategy.run(lambda x: v.scatter_add(tf.IndexedSlices(1.0, x)), args=(batch,))

    for batch in strategy.experimental_distribute_dataset(places):
        step(batch)
    assert v.numpy().tolist() == [1, 1, 0, 3]
    assert v.values[1].tolist() == [1, 1, 0, 3]


def test_slices_among_dense_tensors_are_reduced_together():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def step():
        context = tf.distribute.get_replica_context()
        slices = tf.IndexedSlices([2.0], [context.replica_id_in_sync_group])
        return context.all_reduce("MEAN", {"a": slices, "b": tf.constant(3.0)})

    found = strategy.run(step)
    assert strategy.experimental_local_results(found["a"].values)[0].tolist() == [1.0, 1.0]
    assert strategy.experimental_local_results(found["a"].indices)[0].tolist() == [0, 1]
    assert float(strategy.experimental_local_results(found["b"])[0]) == 3


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda v: v.scatter_add([1.0]), TypeError, "must be IndexedSlices, but got list"),
        (
            lambda v: v.scatter_add(tf.IndexedSlices([1.0], [5])),
            tf.errors.InvalidArgumentError,
            "scatter_add got the index 5, but there are 2 entries",
        ),
        (
            lambda v: v.scatter_add(tf.IndexedSlices([1.0, 2.0], [0])),
            tf.errors.InvalidArgumentError,
            r"needs values of shape \(1,\), but got \(2,\)",
        ),
        (
            lambda v: v[0].assign([1.0, 2.0]),
            tf.errors.InvalidArgumentError,
            r"The slice has shape \(\), but the value has shape \(2,\)",
        ),
        (
            lambda v: tf.convert_to_tensor(tf.IndexedSlices([1.0], [0])),
            ValueError,
            "without a dense_shape",
        ),
        (lambda v: v.op, AttributeError, "no graphs"),
        (lambda v: v.handle, AttributeError, "no resource handle"),
        (lambda v: v.eval(), RuntimeError, r"call numpy\(\)"),
        (
            lambda v: tf.Variable([4]).scatter_div(tf.IndexedSlices([0], [0])),
            tf.errors.InvalidArgumentError,
            "by 0",
        ),
    ],
)
def test_an_error_says_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text):
        call(tf.Variable([1.0, 2.0]))


def test_a_variable_says_why_its_copies_cannot_be_scattered():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rows = tf.IndexedSlices([1.0], [0])
    with strategy.scope():
        mean = tf.Variable([1.0], aggregation=tf.VariableAggregation.MEAN)
        read = tf.Variable([1.0], synchronization=tf.VariableSynchronization.ON_READ)
    with pytest.raises(NotImplementedError, match="ONLY_FIRST_REPLICA or NONE"):
        mean.scatter_max(rows)
    with pytest.raises(NotImplementedError, match="synchronized on read"):
        read.scatter_add(rows)


def test_count_up_to_is_refused_in_a_compiled_function():
    v = tf.Variable(0)
    with pytest.raises(NotImplementedError, match=r"Dataset\.range"):
        tf.function(lambda: v.count_up_to(3))()
    assert v.numpy() == 0
