"""Variables with copies: which copy is read and written, in eager and compiled code."""

import copy
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.errors import InvalidArgumentError

DEVICES = jax.local_devices(backend="cpu")
SUM, MEAN = tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN
FIRST, NONE = tf.VariableAggregation.ONLY_FIRST_REPLICA, tf.VariableAggregation.NONE
ON_READ = tf.VariableSynchronization.ON_READ


def strategy_of(count, first=0):
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(first, first + count)])


@pytest.fixture
def strategy():
    return strategy_of(2)


def created(strategy, value=1.0, aggregation=MEAN, **kwargs):
    with strategy.scope():
        return tf.Variable(value, aggregation=aggregation, name="w", **kwargs)


def own_id():
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)


def copies(strategy, value):
    return [np.asarray(part).tolist() for part in strategy.experimental_local_results(value)]


WAYS = {
    "eager": lambda strategy, fn: strategy.run(fn),
    "compiled": lambda strategy, fn: tf.function(lambda: strategy.run(fn))(),
}
in_both_ways = pytest.mark.parametrize("run", WAYS.values(), ids=WAYS)


def test_each_copy_lies_on_the_device_of_its_replica():
    strategy = strategy_of(3, first=2)
    v = created(strategy)
    for change in (None, v.assign, lambda x: strategy.run(lambda: v.assign_add(x))):
        if change:
            change(2.0)
        assert [part.devices() for part in v.values] == [{d} for d in DEVICES[2:5]]
    assert v.device.endswith("CPU:2")
    assert strategy.run(lambda: v.device[-5:])[1] == "CPU:3"


@in_both_ways
def test_a_variable_without_aggregation_warns_once_by_its_name(strategy, run):
    v = created(strategy, aggregation=NONE)
    with pytest.warns(UserWarning, match="The variable 'w:0' has no aggregation") as caught:
        run(strategy, lambda: v.assign_add(own_id()))
    run(strategy, lambda: v.assign(own_id()))  # a second warning would be an error
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert copies(strategy, v) == [0.0, 1.0]


def test_assigning_for_all_does_not_warn(strategy):
    v = created(strategy, aggregation=NONE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        v.assign(2.0)
        tf.function(lambda: (v.assign_add(1.0), 0)[1])()
    assert copies(strategy, v) == [3.0, 3.0]


F32 = np.float32(1)  # also with x64 enabled
TRANSFORMED = {
    "jit": lambda change: jax.jit(lambda x: (change(x), x)[1])(F32),
    "grad": lambda change: jax.grad(lambda x: (change(x), x)[1])(F32),
    "vmap": lambda change: jax.vmap(lambda x: (change(x), x)[1])(jnp.ones(2, F32.dtype)),
    "scan": lambda change: jax.lax.scan(
        lambda c, x: ((change(x), c)[1], x), 0.0, jnp.ones(2, F32.dtype)
    ),
}


@pytest.mark.timeout(60)
@in_both_ways
@pytest.mark.parametrize("way", TRANSFORMED)
@pytest.mark.parametrize("aggregation", [SUM, MEAN, FIRST])
def test_assigning_where_jax_transforms_is_an_error_and_no_meeting(run, way, aggregation):
    strategy = strategy_of(2)
    v = created(strategy, aggregation=aggregation)
    with pytest.raises(ValueError, match="'w:0' is assigned inside a function that JAX transforms"):
        run(strategy, lambda: TRANSFORMED[way](v.assign))
    assert copies(strategy, v) == [1.0, 1.0]
    run(strategy, lambda: v.assign(tf.constant(5.0)) * 1.0)
    assert copies(strategy, v) == [10.0 if aggregation is SUM else 5.0] * 2


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_another_strategys_run_may_read_and_not_assign(strategy, compiled):
    other = strategy_of(2, first=2)
    v = created(strategy, [1.0, 2.0])
    run = WAYS["compiled" if compiled else "eager"]
    assert copies(other, run(other, lambda: v + 0.0)) == [[1.0, 2.0]] * 2
    with pytest.raises(RuntimeError, match="in the scope of another strategy"):
        run(other, lambda: v.assign([1.0, 1.0]))


def test_the_error_of_another_strategy_says_what_to_do(strategy):
    v = created(strategy)
    with (
        strategy_of(2).scope(),
        error_saying(
            RuntimeError,
            "The variable 'w:0' was created in the scope of another strategy, not the current one.",
            fix="create it in the scope of the strategy that uses it.",
        ),
    ):
        v.assign(2.0)


def test_the_default_strategys_run_may_assign(strategy):
    v = created(strategy)
    tf.distribute.get_strategy().run(lambda: v.assign(3.0))
    assert copies(strategy, v) == [3.0, 3.0]


def test_copies_in_a_function_are_those_of_that_point(strategy):
    v = created(strategy)

    @tf.function
    def step():
        before = strategy.experimental_local_results(v)
        v.assign_add(1.0)
        total = strategy.reduce("SUM", v, axis=None)
        return before, strategy.experimental_local_results(v), total

    for start in (1.0, 2.0):
        before, after, total = step()
        assert [float(x) for x in (*before, *after)] == [start, start, start + 1, start + 1]
        assert float(total) == 2 * (start + 1)


@in_both_ways
@pytest.mark.parametrize(
    ("aggregation", "expected"), [(SUM, 3.0), (MEAN, 1.5), (FIRST, 1.0)], ids=str
)
def test_merge_call_reads_what_the_copies_stand_for(run, aggregation, expected):
    strategy = strategy_of(2)
    v = created(strategy, 0.0, aggregation, synchronization=ON_READ)

    def fn():
        v.assign_add(own_id() + 1.0)
        return tf.distribute.get_replica_context().merge_call(lambda _: v.read_value() * 1.0)

    assert set(copies(strategy, run(strategy, fn))) == {expected}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("start", [0.0, [0.0, 0.0]], ids=["scalars", "vectors"])
def test_parts_are_assigned_to_their_copies(strategy, compiled, start):
    v = created(strategy, start)
    parts = [tf.constant(start) + 1.0, tf.constant(start) + 2.0]
    x = strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group]
    )
    change = lambda y: (v.assign_add(y), 0)[1]  # noqa: E731
    (tf.function(change) if compiled else change)(x)
    assert copies(strategy, v) == [np.asarray(part).tolist() for part in parts]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_parts_of_another_shape_are_refused(strategy, compiled):
    v = created(strategy, [[1.0, 2.0]])
    x = strategy.experimental_distribute_values_from_function(lambda _: tf.constant([1.0, 2.0]))
    change = lambda y: (v.assign(y), 0)[1]  # noqa: E731
    with pytest.raises(ValueError, match=r"has shape \(1, 2\), but the value has shape \(2,\)"):
        (tf.function(change) if compiled else change)(x)
    assert copies(strategy, v) == [[[1.0, 2.0]]] * 2


def test_as_many_parts_as_copies_are_needed(strategy):
    v = created(strategy)
    x = strategy_of(3).experimental_distribute_values_from_function(lambda _: tf.constant(1.0))
    with error_saying(
        ValueError,
        "A value with 3 parts cannot be assigned to the 2 copies of 'w:0'.",
        fix="assign a value from the strategy that made the variable.",
    ):
        v.assign(x)


def test_a_mean_of_whole_numbers_is_refused_at_once(strategy):
    with (
        strategy.scope(),
        error_saying(
            ValueError,
            "Aggregation MEAN needs a floating-point variable, but 'n:0' has dtype int32.",
            fix="create it with a floating-point dtype, or with aggregation=VariableAggregation.SUM.",
        ),
    ):
        tf.Variable(1, aggregation=MEAN, name="n")


def test_a_deep_copy_has_copies_of_its_own(strategy):
    v = created(strategy)
    twin = copy.deepcopy(v)
    strategy.run(lambda: twin.assign(5.0) * 1.0)
    assert (copies(strategy, v), copies(strategy, twin)) == ([1.0, 1.0], [5.0, 5.0])
    strategy.run(lambda: v.assign(7.0) * 1.0)
    assert (copies(strategy, v), copies(strategy, twin)) == ([7.0, 7.0], [5.0, 5.0])


def test_bfloat16_and_empty_values_have_copies(strategy):
    v = created(strategy, tf.cast([1, 2], tf.bfloat16))
    strategy.run(lambda: v.assign_add(v.value()) * 1)
    assert copies(strategy, v) == [[2.0, 4.0]] * 2
    assert v.dtype == tf.bfloat16
    empty = created(strategy, np.zeros((0, 3), np.float32))
    tf.function(lambda: strategy.run(lambda: empty.assign_add(empty.value())))()
    assert [part.shape for part in empty.values] == [(0, 3)] * 2


@in_both_ways
@pytest.mark.parametrize("synchronization", [tf.VariableSynchronization.ON_WRITE, ON_READ])
def test_what_the_first_replica_assigns_stays_a_bool(strategy, run, synchronization):
    v = created(strategy, True, FIRST, synchronization=synchronization)
    run(strategy, lambda: v.assign(tf.cast(own_id(), tf.bool)))
    copied = synchronization is not ON_READ
    assert copies(strategy, v) == [False, not copied]
    for read in (v.read_value(), tf.function(v.read_value)(), *v.values):
        assert read.dtype == tf.bool


@in_both_ways
def test_bools_have_no_sum_over_the_replicas(strategy, run):
    v = created(strategy, True, SUM)
    with pytest.raises(InvalidArgumentError, match="'w:0' of dtype bool cannot be summed"):
        run(strategy, lambda: v.assign(tf.cast(own_id(), tf.bool)))
    assert copies(strategy, v) == [True, True]
    own = created(strategy, True, SUM, synchronization=ON_READ)
    run(strategy, lambda: own.assign(tf.cast(own_id(), tf.bool)))
    assert copies(strategy, own) == [False, True]
    with pytest.raises(InvalidArgumentError, match="cannot be summed over the replicas"):
        own.read_value()


# --- one replica --------------------------------------------------------------------------------


def test_on_one_replica_the_rules_are_the_same():
    strategy = strategy_of(1, first=3)
    v = created(strategy, 4.0, SUM, synchronization=ON_READ)
    assert repr(v) == (
        "SyncOnReadVariable:{\n  0: <tf.Variable 'w:0' shape=() dtype=float32, numpy=4.0>\n}"
    )
    assert v.value().devices() == {DEVICES[3]}
    with pytest.raises(ValueError, match="does not support additions outside run"):
        v.assign_add(1.0)
    assert float(strategy.run(lambda: v.assign_add(1.0) * 1.0)) == 5.0
    assert float(tf.function(lambda: strategy.run(lambda: v.assign_add(1.0) * 1.0))()) == 6.0
    assert strategy.experimental_local_results(v) == (6.0,)
    none = created(strategy, 4.0, NONE, synchronization=ON_READ)
    with pytest.raises(ValueError, match=r"Could not convert from .* VariableAggregation\.NONE"):
        none.numpy()
    assert float(strategy.run(lambda: none.value() * 1.0)) == 4.0


@pytest.mark.parametrize("compiled", [False, True])
def test_copies_without_a_common_value_can_be_assigned_outside_run(strategy, compiled):
    v = created(strategy, 4.0, NONE, synchronization=ON_READ)

    def change():
        v.assign(6.0, read_value=False)
        v.assign_add(3.0, read_value=False)
        v.assign_sub(1.0, read_value=False)

    (tf.function(change) if compiled else change)()
    assert {float(copy) for copy in v.values} == {8.0}
    with pytest.raises(ValueError, match=r"Could not convert from .* VariableAggregation\.NONE"):
        v.assign(1.0)
    assert {float(copy) for copy in v.values} == {8.0}


@in_both_ways
@pytest.mark.parametrize("value", [5.0, 5, True, 1j, [5.0, 0.0], (0.0, 5.0)], ids=str)
def test_a_python_number_has_no_sum_over_the_replicas(strategy, run, value):
    dtype = tf.complex64 if value == 1j else None
    start = [0.0, 0.0] if isinstance(value, (list, tuple)) else 0.0
    v = created(strategy, tf.constant(start, dtype), SUM)
    with pytest.raises(ValueError, match="Each replica assigns") as caught:
        run(strategy, lambda: v.assign_add(value))
    assert "'w:0'" in str(caught.value)
    assert "evenfeed.constant(value)" in str(caught.value)


@in_both_ways
@pytest.mark.parametrize("value", [np.float32(5), np.ones([]) * 5], ids=["scalar", "array"])
def test_an_array_of_numpy_is_summed_like_a_tensor(strategy, run, value):
    v = created(strategy, 0.0, SUM)
    run(strategy, lambda: v.assign(value))
    assert v.numpy() == 5 * strategy.num_replicas_in_sync


@in_both_ways
def test_zero_has_a_sum_over_the_replicas(strategy, run):
    v = created(strategy, 3.0, SUM)
    run(strategy, lambda: v.assign(0.0))
    assert v.numpy() == 0
