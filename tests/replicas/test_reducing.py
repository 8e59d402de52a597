"""reduce and gather: the same results for one array and for separate parts, in a function and outside."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mirroring import without_x64
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

DEVICES = jax.local_devices(backend="cpu")


def strategy_of(count, first=0):
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(first, first + count)])


def parts_on(strategy, parts):
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group]
    )


STRATEGIES = {count: strategy_of(count) for count in (1, 2, 3)}


@settings(max_examples=25)
@given(
    count=st.sampled_from([2, 3]),
    lengths=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    even=st.booleans(),
    op=st.sampled_from(["SUM", "MEAN"]),
    compiled=st.booleans(),
)
def test_over_rows_every_row_counts_once(count, lengths, even, op, compiled):
    lengths = [lengths[0]] * count if even else lengths[:count]
    rows = [np.arange(2 * n, dtype=np.float32).reshape(n, 2) + r for r, n in enumerate(lengths)]
    strategy = STRATEGIES[count]
    reduce = lambda value: strategy.reduce(op, value, axis=0)  # noqa: E731
    found = (tf.function(reduce) if compiled else reduce)(parts_on(strategy, rows))
    every = np.concatenate(rows)
    with np.errstate(invalid="ignore"):
        expected = every.sum(0) if op == "SUM" else every.sum(0) / np.float32(len(every))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_joins_in_the_order_of_the_replicas(axis, compiled):
    strategy = strategy_of(3)
    rows = [np.arange(4).reshape(2, 2) + 10 * r for r in range(3)]
    gather = lambda value: strategy.gather(value, axis)  # noqa: E731
    found = (tf.function(gather) if compiled else gather)(parts_on(strategy, rows))
    assert found.tolist() == np.concatenate(rows, axis).tolist()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("lengths", [(3, 1), (2, 0), (0, 0)])
def test_gather_takes_parts_of_any_length(lengths, compiled):
    strategy = strategy_of(2)
    rows = [np.full((n, 2), r, np.float32) for r, n in enumerate(lengths)]
    gather = lambda value: strategy.gather(value, 0)  # noqa: E731
    found = (tf.function(gather) if compiled else gather)(parts_on(strategy, rows))
    assert found.tolist() == np.concatenate(rows).tolist()
    assert found.shape == (sum(lengths), 2)


def test_gather_joins_text_and_nests():
    strategy = strategy_of(2)
    text = parts_on(strategy, [tf.constant(["a"]), tf.constant(["b", "c"])])
    found = strategy.gather({"t": text, "n": (parts_on(strategy, [np.ones(1), np.ones(2)]),)}, 0)
    assert found["t"].tolist() == [b"a", b"b", b"c"]
    assert found["n"][0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("make", ["arrays", "eager run", "compiled run", "uneven", "variable"])
@pytest.mark.parametrize("what", ["reduce", "gather"])
def test_a_result_lies_on_the_first_device_alone(make, what):
    strategy = strategy_of(2, first=1)
    with strategy.scope():
        variable = tf.Variable([1.0])
    value = parts_on(strategy, [np.ones(1), np.ones(2 if make == "uneven" else 1)])
    if make == "eager run":
        value = strategy.run(tf.square, args=(value,))
    elif make == "compiled run":
        value = tf.function(lambda x: strategy.run(tf.square, args=(x,)))(value)
    elif make == "variable":
        value = variable
    found = strategy.reduce("SUM", value, axis=0) if what == "reduce" else strategy.gather(value, 0)
    assert found.devices() == {DEVICES[1]}


def test_one_array_is_reduced_by_one_program():
    strategy = strategy_of(2)
    value = strategy.run(lambda x: x * 2, args=(parts_on(strategy, [np.ones(2), np.ones(2)]),))
    assert value.array.sharding == strategy.sharding("replica")
    strategy.reduce("SUM", value, axis=0)
    with jax.transfer_guard_device_to_device("disallow"):  # parts are not copied one by one
        assert float(strategy.reduce("SUM", value, axis=0)) == 8.0


def test_a_mirrored_value_counts_once_for_each_replica():
    strategy = strategy_of(2)
    fn = lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant([1.0, 2.0]))  # noqa: E731
    value = tf.function(lambda: strategy.run(fn))()
    assert isinstance(value, tf.distribute.Mirrored)
    assert strategy.reduce("SUM", value, axis=None).tolist() == [4.0, 8.0]
    assert strategy.reduce("MEAN", value, axis=None).tolist() == [2.0, 4.0]
    assert float(strategy.reduce("SUM", value, axis=0)) == 12.0
    assert float(strategy.reduce("MEAN", value, axis=0)) == 3.0
    assert strategy.gather(value, 0).tolist() == [2.0, 4.0, 2.0, 4.0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_a_mean_of_whole_numbers_is_no_whole_number(dtype):
    strategy = strategy_of(2)
    value = parts_on(strategy, [np.array([1, 2], dtype), np.array([2, 2], dtype)])
    assert strategy.reduce("MEAN", value, axis=None).tolist() == [1.5, 2.0]
    assert strategy.reduce("SUM", value, axis=0).dtype == np.dtype(dtype)


@without_x64
def test_wide_values_arrive_narrow_or_raise():
    strategy = strategy_of(2)
    value = parts_on(strategy, [np.array([1]), np.array([2])])
    assert strategy.reduce("SUM", value, axis=0).dtype == np.dtype("int32")
    with pytest.raises(InvalidArgumentError, match="the value of replica 1 does not fit"):
        parts_on(strategy, [np.array([1]), np.array([2**40])])


# --- what is refused ----------------------------------------------------------------------------


def refused(kind, what, fix, value=None, *, axis=0):
    strategy = strategy_of(2)
    parts = parts_on(strategy, [np.ones(2), np.ones(2)]) if value is None else value(strategy)
    with error_saying(kind, what, fix=fix):
        strategy.reduce("SUM", parts, axis=axis)


def test_a_sum_of_what_is_the_same_everywhere_says_so():
    refused(
        ValueError,
        "SUM needs a per-replica value, but got 2.0, which is the same on all replicas.",
        "pass a result of strategy.run, or multiply by strategy.num_replicas_in_sync.",
        lambda strategy: 2.0,
        axis=None,
    )


def test_shapes_that_differ_say_to_reduce_over_the_batch():
    refused(
        InvalidArgumentError,
        "SUM over the replicas needs parts of one shape, but got the shapes [(1,), (2,)].",
        "reduce over the batch too: strategy.reduce(op, value, axis=0).",
        lambda strategy: parts_on(strategy, [np.ones(1), np.ones(2)]),
        axis=None,
    )


def test_an_axis_that_is_not_there_says_so():
    refused(
        ValueError,
        "A part of shape (2,) has no axis 1.",
        "pass an axis that the parts have.",
        axis=1,
    )
    refused(
        ValueError,
        "A part of shape () has no axis 0.",
        "pass axis=None for scalars.",
        lambda strategy: parts_on(strategy, [tf.constant(1.0), tf.constant(2.0)]),
    )


def test_axes_are_whole_numbers_each_once():
    refused(
        TypeError,
        "axis must be None, an integer or a tuple of integers, but got [0].",
        "write axis=0, or axis=(0, 1).",
        axis=[0],
    )
    refused(
        InvalidArgumentError,
        "axis=(0, -1) contains an axis twice.",
        "list each axis once.",
        axis=(0, -1),
    )


def test_text_and_bools_have_no_sum():
    for value, kind, what in (
        (["a", "b"], tf.errors.InvalidArgumentError, "Strings cannot be reduced with SUM or MEAN."),
        (
            [np.array([True]), np.array([False])],
            TypeError,
            "Bools cannot be reduced with SUM or MEAN.",
        ),
    ):
        strategy = strategy_of(2)
        with pytest.raises(kind, match=what):
            strategy.reduce("SUM", parts_on(strategy, value), axis=0)


def test_parts_of_several_dtypes_are_refused():
    refused(
        InvalidArgumentError,
        "The replicas' parts have different dtypes: ['float32', 'int32'].",
        "return the same dtype from every replica, with evenfeed.cast.",
        lambda strategy: parts_on(strategy, [tf.constant(1.0), tf.constant(1)]),
        axis=None,
    )


def test_a_nest_has_no_axis():
    refused(
        TypeError,
        "axis must be None to reduce the structure …",
        "reduce each value separately, or pass axis=None to reduce over the replicas only.",
        lambda strategy: [parts_on(strategy, [np.ones(1), np.ones(1)])],
    )


def test_gather_says_what_cannot_be_joined():
    strategy = strategy_of(2)
    for value, axis, kind, what in (
        (
            [np.ones((1, 2)), np.ones((1, 3))],
            0,
            InvalidArgumentError,
            "cannot be concatenated along",
        ),
        ([np.ones((1, 2)), np.ones(1)], 0, InvalidArgumentError, "cannot be concatenated along"),
        ([tf.constant(1.0), tf.constant(2.0)], 0, InvalidArgumentError, "Scalars have no axis"),
        ([np.ones(1), np.ones(1)], 1, InvalidArgumentError, "has no axis 1"),
        ([np.ones(1), np.ones(1)], None, ValueError, "axis must be an integer, but got None"),
    ):
        with pytest.raises(kind, match=what):
            strategy.gather(parts_on(strategy, value), axis)


@pytest.mark.parametrize("compiled", [False, True])
def test_gather_refuses_slices_that_are_the_same_everywhere(compiled):
    strategy = STRATEGIES[2]
    gather = lambda value: strategy.gather(value, 0)  # noqa: E731
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([3, 1]))
    with pytest.raises(NotImplementedError, match="gather does not support IndexedSlices"):
        (tf.function(gather) if compiled else gather)(slices)


def test_gather_says_which_length_or_rank_differs():
    strategy = STRATEGIES[2]
    with pytest.raises(InvalidArgumentError, match=r"Dimension 1 in both shapes must be equal"):
        strategy.gather(parts_on(strategy, [np.ones((1, 1)), np.ones((1, 2))]), 0)
    with pytest.raises(InvalidArgumentError, match=r"Shape must be rank 1 but is rank 2"):
        strategy.gather(parts_on(strategy, [np.ones(1), np.ones((1, 2))]), 0)
