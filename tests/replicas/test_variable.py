"""Plain variables: where they may be assigned, how they are copied, and their devices."""

import copy
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import without_x64
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

DEVICES = jax.local_devices(backend="cpu")
INSIDE = (
    "The variable 'w:0' is assigned inside a function that JAX transforms (scan, cond, vmap, grad or "
    "jit); the value would leak as a tracer."
)

F32 = np.float32(1)  # also with x64 enabled
TRANSFORMED = {
    "jit": lambda change: jax.jit(lambda x: change(x) and x)(F32),
    "grad": lambda change: jax.grad(lambda x: change(x) and x)(F32),
    "vmap": lambda change: jax.vmap(lambda x: change(x) and x)(jnp.ones(2, F32.dtype)),
    "scan": lambda change: jax.lax.scan(
        lambda c, x: (change(x) and c, x), 0.0, jnp.ones(2, F32.dtype)
    ),
    "cond": lambda change: jax.lax.cond(True, lambda x: change(x) and x, lambda x: x, F32),
    "constants in jit": lambda change: jax.jit(lambda x: change(2.0) and x)(F32),
}


@pytest.mark.parametrize("way", TRANSFORMED)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_assigning_where_jax_transforms_is_an_error_with_the_line(way, compiled, method):
    w = tf.Variable(1.0, name="w")

    def change(x):
        with error_saying(
            ValueError, INSIDE, fix="return the value from that function, and assign it outside."
        ):
            getattr(w, method)(x)
        return True

    run = (lambda: TRANSFORMED[way](change) is not None) if not compiled else None
    if compiled:
        tf.function(lambda: jnp.sum(jax.tree.leaves(TRANSFORMED[way](change))[0]))()
    else:
        assert run()
    assert w.numpy() == 1.0
    assert isinstance(w.value(), jax.Array)
    assert not isinstance(w.value(), jax.core.Tracer)


def test_reading_works_where_jax_transforms():
    w = tf.Variable([1.0, 2.0])
    assert jax.jit(lambda x: x * w.value())(2.0).tolist() == [2.0, 4.0]
    assert jax.grad(lambda x: jnp.sum(x * w.value()))(2.0) == 3.0
    assert jax.vmap(lambda x: x * w.value()[0])(jnp.ones(2)).tolist() == [1.0, 1.0]


def test_gradients_are_taken_on_values():
    w = tf.Variable([1.0, 2.0])
    gradient = jax.grad(lambda value: jnp.sum(value**2))(w.value())
    w.assign_sub(0.5 * gradient)
    assert w.numpy().tolist() == [0.0, 0.0]


def test_a_function_that_fails_assigns_nothing():
    w = tf.Variable(1.0)

    @tf.function
    def step(x):
        w.assign(x)
        raise KeyError("later")

    with pytest.raises(KeyError):
        step(2.0)
    assert w.numpy() == 1.0


def test_a_first_value_that_is_traced_is_refused():
    @jax.jit
    def step(x):
        with error_saying(
            ValueError,
            "The initial value of a variable is a tracer: it depends on arguments of a function that JAX transforms.",
            fix="pass a function: Variable(lambda: value), or create the variable outside.",
        ):
            tf.Variable(x)
        return x

    step(1.0)


@pytest.mark.parametrize(
    ("value", "shape", "said"),
    [([1.0, 2.0, 3.0], "(2,)", "(3,)"), (1.0, "(2,)", "()")],
)
def test_another_shape_is_refused(value, shape, said):
    w = tf.Variable([1.0, 2.0], name="w")
    with error_saying(
        ValueError,
        f"The variable 'w:0' has shape {shape}, but the value has shape {said}.",
        fix=f"pass a value of shape {shape}, or create the variable with None for a length that "
        "changes: Variable(value, shape=[None]).",
    ):
        w.assign(value)


def test_what_is_added_is_not_spread_out():
    w = tf.Variable([[1.0, 2.0]], name="w")
    with error_saying(
        InvalidArgumentError,
        "The variable 'w:0' has shape (1, 2), so a value of shape (2,) cannot be added.",
        fix="pass a value of the same shape, for example with jax.numpy.broadcast_to.",
    ):
        w.assign_add([1.0, 1.0])


def test_a_length_may_change_where_it_is_none():
    w = tf.Variable([1, 2], shape=[None])
    assert w.assign([1, 2, 3]).shape.as_list() == [None]
    assert tf.function(w.value)().tolist() == [1, 2, 3]
    w.assign([])
    assert tf.function(w.value)().shape == (0,)


def test_text_is_refused():
    with error_saying(
        TypeError, "A variable holds numbers, but got 'a'.", fix="keep strings in Python objects."
    ):
        tf.Variable("a")


# --- 64 bits ------------------------------------------------------------------------------------


@without_x64
def test_without_x64_a_value_that_fits_is_narrow_and_one_that_does_not_raises():
    assert tf.Variable(np.array([1, 2])).dtype == np.dtype("int32")
    with pytest.raises(InvalidArgumentError, match="does not fit into int32"):
        tf.Variable(np.array([2**40]))
    with pytest.warns(UserWarning, match="float64 was asked for"):
        w = tf.Variable(1.0, dtype=tf.float64)
    assert w.dtype == np.dtype("float32")
    assert w.assign(np.float64(2.5)).numpy() == np.float32(2.5)


def test_with_x64_values_keep_their_width():
    with jax.enable_x64(True):
        w = tf.Variable(np.array([2**40]))
        assert w.assign_add([1]).numpy().tolist() == [2**40 + 1]
        assert tf.Variable(1.0, dtype=tf.float64).dtype == np.dtype("float64")


# --- copies -------------------------------------------------------------------------------------


def test_a_deep_copy_holds_its_own():
    w = tf.Variable([1.0], name="w", trainable=False)
    twin = copy.deepcopy({"w": w, "again": w})
    assert twin["w"] is twin["again"]
    twin["w"].assign([2.0])
    assert (w.numpy().tolist(), twin["w"].numpy().tolist()) == ([1.0], [2.0])
    assert (twin["w"].name, twin["w"].trainable) == ("w:0", False)


def test_a_deep_copy_is_known_to_functions():
    twin = copy.deepcopy(tf.Variable(1.0))
    step = tf.function(lambda x: twin.assign_add(x).value())
    assert [float(step(2.0)), float(step(2.0)), twin.numpy()] == [3.0, 5.0, 5.0]


def test_a_shallow_copy_is_the_variable():
    w = tf.Variable(1.0)
    assert copy.copy(w) is w


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.int32, tf.bool])
def test_a_pickled_variable_comes_back(dtype):
    w = tf.Variable(tf.cast([0, 1], dtype), name="w", trainable=False, shape=[None])
    again = pickle.loads(pickle.dumps(w))
    assert again.numpy().tolist() == w.numpy().tolist()
    facts = ("name", "trainable", "dtype", "shape", "aggregation", "synchronization")
    assert [getattr(again, f) for f in facts] == [getattr(w, f) for f in facts]
    assert again is not w


def test_a_variable_pickled_in_one_scope_gets_copies_in_another():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    kept = pickle.dumps(tf.Variable(3.0))
    with strategy.scope():
        again = pickle.loads(kept)
    assert [float(v) for v in strategy.experimental_local_results(again)] == [3.0, 3.0]
    assert pickle.loads(pickle.dumps(again)).numpy() == 3.0


# --- what takes variables -----------------------------------------------------------------------


def test_print_shows_the_value():
    out = io.StringIO()
    tf.print(tf.Variable([1.5, 2.0]), output_stream=out)
    assert out.getvalue() == "[1.5 2]\n"


def test_a_reference_finds_the_variable():
    w, other = tf.Variable(1.0), tf.Variable(1.0)
    assert {w.ref(): "w"}[w.ref()] == "w"
    assert w.ref() != other.ref()
    assert w.ref() != w
    assert w.ref().deref() is w
    assert "tf.Variable" in repr(w.ref())


def test_numpy_while_tracing_says_where_to_call_it():
    w = tf.Variable(1.0, name="w")

    @tf.function
    def step():
        with error_saying(
            NotImplementedError,
            "The variable 'w:0' has no concrete value while a function is traced.",
            fix="call numpy() outside evenfeed.function.",
        ):
            w.numpy()
        return w.value()

    step()


def test_a_variable_lies_where_its_strategy_computes():
    with tf.distribute.OneDeviceStrategy("CPU:2").scope():
        w = tf.Variable(1.0)
    assert w.value().devices() == {DEVICES[2]}
    assert w.device.endswith("device:CPU:2")
    assert w.assign_add(1.0).value().devices() == {DEVICES[2]}
    assert tf.Variable(1.0).device.endswith("device:CPU:0")


def test_a_shape_that_does_not_fit_cannot_be_set():
    w = tf.Variable([1, 2], shape=[None])
    w.set_shape([2])
    assert w.shape.as_list() == [2]
    with pytest.raises(ValueError, match="has shape"):
        w.set_shape([3])


@pytest.mark.parametrize("compiled", [False, True])
def test_jax_says_how_to_pass_what_a_variable_holds(compiled):
    v = tf.Variable([1.0, 2.0], name="v")

    def summed():
        return jnp.sum(v)

    with pytest.raises(
        ValueError, match=r"arrays, but got the variable 'v:0'[^$]*variable\.value\(\)"
    ):
        (tf.function(summed) if compiled else summed)()
    assert jnp.sum(v.value()) == 3
    assert jnp.asarray(v).tolist() == [1, 2]
