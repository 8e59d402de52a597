"""`GradientTape`, compared with `jax.value_and_grad`, and what it cannot record."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import WAYS, context, each, mirrored, parts, run

import evenfeed as tf


def _random(*shape):
    return jax.random.normal(jax.random.key(sum(shape)), shape, "f4")


def _lstm(w, x):
    def cell(state, row):
        hidden, cell = state
        i, f, g, o = jnp.split(jnp.concatenate([row, hidden], -1) @ w["kernel"], 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros((x.shape[1], 6), "f4")
    return jnp.mean(jax.lax.scan(cell, (zeros, zeros), x)[0][0] ** 2)


def _convolution(w, x):
    for name in ("first", "second"):
        x = tf.nn.conv2d(x, w[name], 1, "SAME")
        x = jax.nn.relu((x - x.mean((0, 1, 2))) * jax.lax.rsqrt(x.var((0, 1, 2)) + 1e-3))
    return tf.reduce_mean(tf.nn.softmax(tf.reduce_mean(x, axis=[1, 2]))[:, 0])


def _attention(w, x):
    q, k, v = (x @ w[name] for name in "qkv")
    return jnp.sum(jax.nn.softmax(q @ k.mT / 2.0) @ v * x)


def _embedding(w, x):
    return tf.reduce_sum(tf.gather(w["table"], tf.cast(x, tf.int32)) ** 2)


def _branches(w, x):
    def loss(value):
        return jax.lax.cond(jnp.sum(x) > 0, jnp.sin, jnp.cos, value)

    return jnp.sum(jax.checkpoint(loss)(w["a"] * x)) + jax.nn.logsumexp(w["a"])


def _half(w, x):
    return jnp.sum((x.astype("bfloat16") @ w["a"].astype("bfloat16")).astype("f4") ** 2)


LAYERS = {
    "lstm": (_lstm, {"kernel": _random(10, 24)}, _random(5, 3, 4)),
    "convolution": (
        _convolution,
        {"first": _random(3, 3, 2, 4), "second": _random(3, 3, 4, 4)},
        _random(2, 6, 6, 2),
    ),
    "attention": (
        _attention,
        {name: _random(4, 4) + i for i, name in enumerate("qkv")},
        _random(3, 4),
    ),
    "embedding": (_embedding, {"table": _random(7, 3)}, jnp.asarray([1.0, 4.0, 1.0])),
    "branches": (_branches, {"a": _random(4)}, _random(4)),
    "bfloat16": (_half, {"a": _random(4, 5)}, _random(3, 4)),
}


def _step(loss, variables):
    def step(x):
        with tf.GradientTape() as tape:
            value = loss({name: v.value() for name, v in variables.items()}, x)
        return value, tape.gradient(value, variables)

    return step


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_those_of_jax_and_a_program_computes_the_forward_pass_once(name):
    loss, weights, x = LAYERS[name]
    variables = {name: tf.Variable(value) for name, value in weights.items()}
    step = _step(loss, variables)
    wanted = jax.value_and_grad(loss)(weights, x)
    near = 1e-2 if name == "bfloat16" else 2e-5  # XLA rounds to bfloat16 less often in a program
    for found in (step(x), tf.function(step)(x)):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, near, 1e-6), found, wanted)
    closed = tf.function(step).get_concrete_function(x).jaxpr
    flops = _flops(jax.extend.core.jaxpr_as_fun(closed), *map(_zeros, closed.in_avals))
    assert flops == _flops(jax.value_and_grad(loss), weights, x)


def _zeros(aval):
    return jnp.zeros(aval.shape, aval.dtype)


def _flops(function, *args):
    return jax.jit(function).lower(*args).compile().cost_analysis()["flops"]


def test_two_gradients_of_a_persistent_tape_share_the_forward_pass():
    w, x = tf.Variable(_random(4, 4)), _random(3, 4)

    def both(x):
        with tf.GradientTape(persistent=True) as tape:
            hidden = jnp.sin(x @ w.value())
            first, second = jnp.sum(hidden), jnp.sum(hidden**2)
        return tape.gradient(first, w), tape.gradient(second, w)

    compiled = tf.function(both)
    for found, wanted in zip(compiled(x), both(x), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-5)
    program = str(compiled.get_concrete_function(x).jaxpr)
    assert program.count("= sin ") + program.count("name=sin") <= 1


@pytest.mark.parametrize("compiled", [False, True])
def test_an_input_that_an_operation_returns_unchanged_counts_once(compiled):
    w = tf.Variable([1.0, 2.0])

    @jax.jit
    def passed_on(x):
        return x, jnp.sum(x)

    def step():
        with tf.GradientTape() as tape:
            same, total = passed_on(w.value())
            y = jnp.sum(same * same) + total
        return tape.gradient(y, w)

    np.testing.assert_array_equal((tf.function(step) if compiled else step)(), [3.0, 5.0])


def test_a_side_effect_of_the_forward_pass_happens_once():
    printed = []

    @jax.jit
    def noisy(x):
        jax.debug.callback(printed.append, jnp.sum(x))
        return x * x

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = noisy(x)
        return tape.gradient(y, x)

    np.testing.assert_array_equal(step(tf.constant([1.0, 2.0])), [2.0, 4.0])
    jax.effects_barrier()
    assert len(printed) == 1


@pytest.mark.parametrize("way", WAYS)
def test_gradients_on_replicas_go_through_collectives_as_in_jax(way):
    strategy = mirrored(2)
    x = each(strategy, lambda i: jnp.asarray([1.0, 2.0]) * (i + 1))

    def by_tape(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(context().all_reduce("SUM", x * x) ** 2)
        return tape.gradient(y, x)

    def by_jax(x):
        return jax.grad(lambda x: jnp.sum(context().all_reduce("SUM", x * x) ** 2))(x)

    for found, wanted in zip(
        parts(strategy, run(way, strategy, by_tape, x)),
        parts(strategy, run(way, strategy, by_jax, x)),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("way", WAYS)
def test_a_step_with_a_tape_trains_variables_on_uneven_batches_too(way):
    strategy = mirrored(2)
    rows = np.arange(10, dtype="f4").reshape(5, 2)
    with strategy.scope():
        w = tf.Variable([1.0, -1.0], aggregation=tf.VariableAggregation.SUM)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x * w) ** 2) / 100.0
        w.assign_sub(0.1 * tape.gradient(loss, w))

    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(4)
    for batch in strategy.experimental_distribute_dataset(dataset):
        run(way, strategy, step, batch)
    wanted = np.asarray([1.0, -1.0], "f4")
    for start in (0, 4):
        wanted = wanted - 0.1 * 2 * wanted * (rows[start : start + 4] ** 2).sum(0) / 100
    np.testing.assert_allclose(w.numpy(), wanted, 1e-5)


def test_variables_can_be_assigned_while_a_tape_records():
    count, w = tf.Variable(0.0, trainable=False), tf.Variable(2.0)

    def step():
        with tf.GradientTape() as tape:
            count.assign_add(1.0)
            y = w * w * count
        return tape.gradient(y, [w, count])

    assert [float(step()[0]), float(tf.function(step)()[0])] == [4.0, 8.0]
    assert count.numpy() == 2.0
    assert step()[1] is None


def test_a_tape_follows_what_a_compiled_function_reads_after_it_assigned_a_variable():
    v = tf.Variable(3.0)

    @tf.function
    def step(x):
        before = 5.0 * v
        v.assign(2.0 * x)
        return before + v * v

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        y = step(x)
    assert (float(y), float(v.numpy())) == (31.0, 4.0)
    assert float(tape.gradient(y, v)) == 5 + 8
    assert float(step(x)) == 36.0


def test_a_tape_in_plain_python_keeps_values_and_branches_and_records_compiled_functions():
    w = tf.Variable([1.0, 2.0])
    compiled = tf.function(lambda x: tf.reduce_sum(w * x * x))
    x = tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x)
        if y > 10.0:  # a value, not a tracer
            y = y * 2.0
    gradients = tape.gradient(y, [w, x])
    np.testing.assert_array_equal(gradients[0], [18.0, 32.0])
    np.testing.assert_array_equal(gradients[1], [12.0, 32.0])


def test_functions_that_run_eagerly_have_tapes():
    w = tf.Variable(3.0)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            y = w * w
        return tape.gradient(y, w)

    tf.config.run_functions_eagerly(True)
    try:
        assert float(step()) == 6.0
    finally:
        tf.config.run_functions_eagerly(False)


def test_a_tape_works_inside_jax_transformations():
    w = tf.Variable(3.0)

    def gradient(x):
        with tf.GradientTape() as tape:
            y = jnp.sin(x) * w.value() * w.value()
        return tape.gradient(y, w)

    rows = jnp.asarray([0.5, 1.0])
    np.testing.assert_allclose(jax.vmap(gradient)(rows), 6 * np.sin(rows), 1e-6)
    np.testing.assert_allclose(jax.grad(gradient)(0.5), 6 * np.cos(0.5), 1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_tape_around_the_replicas_is_an_error(compiled):
    strategy = mirrored(2)

    def outside():
        with tf.GradientTape():
            strategy.run(lambda: tf.constant(1.0))

    with pytest.raises(ValueError, match="open the tape inside the function that is passed"):
        (tf.function(outside) if compiled else outside)()


def test_wrong_arguments_say_what_to_pass():
    w = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = w * w
    wanted = "A target of gradients is a tensor that JAX computed, or a variable, but got"
    for target in (0.0, 3, "y", None, [y, 0.0]):
        with pytest.raises(TypeError, match=wanted):
            tape.gradient(target, w)
    with pytest.raises(ValueError, match=wanted):
        tape.gradient(np.float32(1), w)
    with pytest.raises(ValueError, match="A source of gradients is a variable or a tensor"):
        tape.gradient(y, "w")
    with pytest.raises(ValueError, match="watches tensors and variables, but got 1"):
        tape.watch(1.0)
    with pytest.raises(ValueError, match="same number of rows"):
        tape.batch_jacobian(y, y)
    with pytest.raises(ValueError, match="'half' is not a valid UnconnectedGradients"):
        tape.gradient(y, w, unconnected_gradients="half")


def test_a_tape_can_be_used_once_unless_it_is_persistent():
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = w * w
    tape.gradient(y, w)
    with pytest.raises(RuntimeError, match="persistent=True"):
        tape.gradient(y, w)


def test_an_error_in_the_block_closes_the_tape():
    with pytest.raises(ZeroDivisionError), tf.GradientTape():
        _ = 1 / 0
    w = tf.Variable(1.0)
    assert w.assign(2.0).numpy() == 2.0
    with tf.GradientTape() as tape:
        y = w * 3.0
    assert float(tape.gradient(y, w)) == 3.0


def test_the_classes_of_jax_that_a_tape_extends_are_there():
    """A version of JAX in which operations reach traces otherwise must fail here."""
    assert callable(jax.extend.core.set_current_trace)
    assert callable(jax.extend.core.take_current_trace)
    for name in ("process_primitive", "process_custom_jvp_call", "process_custom_vjp_call"):
        assert callable(getattr(jax.core.Trace, name))
    tracers = []
    jax.make_jaxpr(lambda x: tracers.append(x * 2) or x)(1.0)
    assert isinstance(tracers[0].val, jax.extend.core.Var)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_a_variable_is_a_target_too(wrap):
    v, other = tf.Variable(2.0), tf.Variable(3.0)

    def gradients():
        with tf.GradientTape(persistent=True) as tape:
            y = 2 * v
        return tape.gradient([y, v], [v, other]), tape.gradient(other, [v, other])

    assert wrap(gradients)() == ([3.0, None], [None, 1.0])
