"""Replicas in eager mode: devices, settings, collectives, gradients."""

import contextvars

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import WAYS, context, each, mirrored, number, parts, run

import evenfeed as tf


def test_each_replica_computes_on_its_own_device():
    strategy = mirrored(3)
    made = strategy.run(lambda: jnp.zeros(2))
    assert [part.devices() for part in made.values] == [{d} for d in strategy.mesh.devices.flat]


def test_context_variables_of_the_caller_reach_the_replicas():
    variable = contextvars.ContextVar("variable")
    variable.set("the caller's")
    strategy = mirrored(2)
    assert parts(strategy, strategy.run(variable.get)) == ["the caller's"] * 2


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("enable_x64", not jax.config.jax_enable_x64),
        ("debug_nans", True),
        ("default_matmul_precision", "float32"),
        ("numpy_rank_promotion", "raise"),
        ("disable_jit", True),
        ("default_prng_impl", "rbg"),
        ("transfer_guard_host_to_device", "log"),
    ],
)
def test_settings_of_jax_reach_the_replicas(setting, value):
    strategy = mirrored(2)
    before = getattr(jax.config, f"jax_{setting}")
    assert before != value, "the test tests nothing"
    read = lambda: getattr(jax.config, f"jax_{setting}")  # noqa: E731
    with getattr(jax, setting)(value):
        assert parts(strategy, strategy.run(read)) == [value] * 2
    assert parts(strategy, strategy.run(read)) == [before] * 2


def test_nan_checks_of_the_caller_hold_in_every_replica():
    strategy = mirrored(2)
    value = each(strategy, lambda r: jnp.float32(1 - r))
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        strategy.run(lambda x: x / x, args=(value,))
    assert caught.value.__notes__[-1] == "while replica 1 of 2 ran its function."


# --- arguments on other devices -------------------------------------------------------------


def step_result(strategy):
    """Return an array as a compiled step returns it: committed to the first device."""
    one = each(strategy, lambda r: jnp.float32(1))
    step = tf.function(lambda x: jnp.arange(2.0) + strategy.reduce("SUM", x, axis=None))
    array = step(one)
    assert array.committed, "the test tests nothing"
    return array


def test_an_array_of_a_compiled_step_can_be_an_argument():
    strategy = mirrored(2)
    array = step_result(strategy)
    own = each(strategy, jnp.float32)
    found = parts(strategy, strategy.run(lambda a, x: a + x, args=(array, own)))
    np.testing.assert_array_equal(found, np.asarray(array) + np.array([[0.0], [1.0]]))


def test_an_array_of_a_compiled_step_can_be_closed_over():
    strategy = mirrored(2)
    array = step_result(strategy)
    own = each(strategy, jnp.float32)
    found = strategy.run(lambda x: array + x, args=(own,))
    np.testing.assert_array_equal(found.array, [2.0, 3.0, 3.0, 4.0])


def test_arrays_that_the_program_bound_to_several_devices_are_explained():
    strategy = mirrored(2)
    arrays = [jax.device_put(jnp.zeros(2), device) for device in jax.devices("cpu")[:2]]
    with pytest.raises(ValueError, match="incompatible devices") as caught:
        strategy.run(lambda: arrays[0] + arrays[1])
    assert any("strategy.run(fn, args=(array,))" in note for note in caught.value.__notes__)


def test_an_argument_that_is_bound_to_no_device_stays_the_object_it_is():
    strategy = mirrored(2)
    array = tf.constant([1.0])
    assert strategy.run(lambda x: x, args=(array,)) is array


# --- collectives ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "bfloat16", "float32", "complex64"])
def test_all_reduce_keeps_the_dtype_of_sums(way, dtype):
    strategy = mirrored(3)
    value = each(strategy, lambda r: jnp.asarray([r, 2], dtype))
    found = parts(strategy, run(way, strategy, lambda x: context().all_reduce("SUM", x), value))
    assert [part.dtype.name for part in found] == [dtype] * 3
    assert [part.tolist() for part in found] == [[3, 6]] * 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inside", [lambda f: f, jax.jit])
def test_a_mean_of_integers_is_a_float(way, inside):
    strategy = mirrored(2)
    value = each(strategy, jnp.int32)

    def step(x):
        return inside(lambda x: context().all_reduce("MEAN", x))(x)

    assert [float(p) for p in parts(strategy, run(way, strategy, step, value))] == [0.5, 0.5]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [True, "text"])
def test_what_is_no_number_cannot_be_reduced(way, value):
    with pytest.raises(tf.errors.InvalidArgumentError, match="all_reduce needs numbers") as caught:
        run(way, mirrored(2), lambda: context().all_reduce("SUM", tf.constant(value)))
    assert isinstance(caught.value, TypeError)  # TensorFlow raises one class or the other


@pytest.mark.parametrize("way", WAYS)
def test_all_reduce_takes_nests_and_scalars_and_nothing(way):
    strategy = mirrored(2)

    def step(x):
        nest = {"a": x, "b": [1, (x * 2,)], "c": None}
        return context().all_reduce("SUM", nest), context().all_reduce("SUM", [])

    found = parts(strategy, run(way, strategy, step, each(strategy, jnp.float32)))
    assert found == [({"a": 1.0, "b": [2, (2.0,)], "c": None}, [])] * 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("dtype", ["bool", "int32", "bfloat16"])
def test_all_gather_joins_along_an_axis(way, axis, dtype):
    strategy = mirrored(3)
    value = each(strategy, lambda r: jnp.full((2, 2), r % 2, dtype))
    step = lambda x: context().all_gather({"x": x, "y": [x]}, axis)  # noqa: E731
    expected = np.concatenate([np.full((2, 2), r % 2) for r in range(3)], axis)
    for part in parts(strategy, run(way, strategy, step, value)):
        np.testing.assert_array_equal(part["x"].astype(int), expected)
        assert part["x"].dtype.name == dtype
        np.testing.assert_array_equal(part["y"][0], part["x"])


@pytest.mark.parametrize("way", WAYS)
def test_all_gather_joins_parts_of_other_lengths(way):
    strategy = mirrored(3)
    value = each(strategy, lambda r: jnp.arange(r, dtype=jnp.float32))

    def step(x):
        joined = context().all_gather(x, 0)
        return joined, jax.grad(lambda x: (context().all_gather(x, 0) ** 2).sum() * 2)(x)

    for replica, (joined, change) in enumerate(parts(strategy, run(way, strategy, step, value))):
        assert joined.tolist() == [0, 0, 1]
        assert change.tolist() == [12 * i for i in range(replica)]


def test_all_gather_of_other_lengths_in_a_program_is_refused():
    strategy = mirrored(2)
    value = each(strategy, lambda r: jnp.zeros(r + 1))
    with pytest.raises(ValueError, match=r"replicas pass \[1, 2\]"):
        strategy.run(jax.jit(lambda x: context().all_gather(x, 0)), args=(value,))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("axis", [1, -2])
def test_an_axis_that_is_not_there_is_refused(way, axis):
    strategy = mirrored(2)
    with pytest.raises(ValueError, match=f"has no axis {axis} to gather along"):
        run(way, strategy, lambda: context().all_gather(jnp.zeros(2), axis))


@pytest.mark.parametrize("inside", [jax.jit, jax.grad, jax.vmap])
def test_merge_call_inside_of_a_transformation_is_refused(inside):
    strategy = mirrored(2)
    argument = jnp.zeros(1) if inside is jax.vmap else jnp.float32(0)

    def step():
        return inside(lambda x: context().merge_call(lambda strategy, x: x, args=(x,)))(argument)

    with pytest.raises(
        ValueError, match="merge_call was called inside a function that JAX transforms"
    ):
        strategy.run(step)


def test_merge_call_gives_values_of_all_replicas_and_shares_of_the_result():
    strategy = mirrored(3)

    def merge_fn(strategy, x, plain, *, named):
        assert tf.distribute.in_cross_replica_context()
        assert plain == "same"
        total = strategy.reduce("SUM", x, axis=None)
        return {"x": x, "total": total, "named": named}

    def step():
        r = number()
        return context().merge_call(merge_fn, args=(jnp.int32(r), "same"), kwargs={"named": [r]})

    assert parts(strategy, strategy.run(step)) == [
        {"x": r, "total": 3, "named": [r]} for r in range(3)
    ]


def test_a_nest_is_reduced_at_one_meeting(monkeypatch):
    from evenfeed.replicas.run.replica_threads import ReplicaThreads

    met = []
    meet = ReplicaThreads.meet
    monkeypatch.setattr(
        ReplicaThreads, "meet", lambda self, *args: met.append(args[:2]) or meet(self, *args)
    )
    tree = {"a": [jnp.zeros(2), jnp.zeros((2, 3))], "b": jnp.float32(1)}
    mirrored(2).run(lambda: context().all_reduce("MEAN", tree))
    assert [replica for replica, _ in met] == [0, 1]
