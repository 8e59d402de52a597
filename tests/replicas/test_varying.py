"""Which results are the same on all replicas, and collectives that not all replicas would reach."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from tests.mirroring import context, each, mirrored, number

import evenfeed as tf
from evenfeed.replicas.run.varying import varying_outputs

AXIS = "replica"


def outputs(function, *own):
    """Return which outputs vary, for a function of x, which differs between replicas, and w, which does not."""
    closed = jax.make_jaxpr(function, axis_env=[(AXIS, 2)])(jnp.ones(2), jnp.ones(2))
    return varying_outputs(closed.jaxpr, (AXIS,), frozenset(own or (0,)))


def total(x):
    return lax.psum(x, AXIS)


def test_what_comes_of_a_collective_is_the_same():
    assert outputs(lambda x, w: (x, w, total(x), x * total(x), w + total(x))) == [
        True, False, False, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("collective", [lax.pmean, lax.pmax, lax.pmin, lax.all_gather])
def test_other_collectives_agree_too(collective):
    assert outputs(lambda x, w: collective(x, AXIS)) == [False]


@pytest.mark.parametrize(
    "collective",
    [
        lambda x: lax.ppermute(x, AXIS, [(0, 1)]),
        lambda x: lax.psum_scatter(x, AXIS, tiled=True),
        lambda x: lax.psum(x, AXIS, axis_index_groups=[[0], [1]]),
        jax.vmap(lambda a: lax.psum(a, "rows"), axis_name="rows"),
    ],
)
def test_collectives_that_do_not_give_all_the_same_differ(collective):
    assert outputs(lambda x, w: collective(x)) == [True]


@pytest.mark.parametrize(
    "inside",
    [
        jax.jit,
        jax.checkpoint,
        lambda f: lambda x, w: lax.cond(w[0] > 0, f, f, x, w),
        lambda f: lambda x, w: lax.scan(lambda c, _: (f(x, c), None), w, None, length=2)[0],
        lambda f: lambda x, w: lax.fori_loop(0, 2, lambda i, c: f(x, c), w),
        jax.vmap,
        lambda f: lambda x, w: jax.grad(lambda w: f(x, w).sum())(w) * 0 + f(x, w),
        lambda f: lambda x, w: jax.nn.relu(f(x, w)),
    ],
)
def test_the_inside_of_an_operation_is_looked_at(inside):
    assert outputs(inside(lambda x, w: total(x) + w)) == [False]
    assert outputs(inside(lambda x, w: x + w)) == [True]


def test_a_loop_is_gone_round_until_nothing_new_differs():
    def shift(x, w):
        return lax.fori_loop(0, 3, lambda i, c: (c[1], c[2], x), (w, w, w))

    assert outputs(shift) == [True, True, True]
    assert outputs(lambda x, w: lax.fori_loop(0, 3, lambda i, c: (c[1], total(x)), (w, w))) == [
        False, False,
    ]  # fmt: skip


def test_who_one_is_and_what_the_host_says_differ():
    def asked(x, w):
        said = jax.pure_callback(lambda w: w, jax.ShapeDtypeStruct((2,), jnp.float32), w)
        return lax.axis_index(AXIS), said, jax.jit(lambda w: lax.axis_index(AXIS) + w)(w)

    assert outputs(asked) == [True, True, True]


def test_a_key_that_is_the_same_everywhere_draws_the_same():
    assert outputs(lambda x, w: jax.random.normal(jax.random.key(0), (2,)) + w) == [False]


@pytest.mark.parametrize(
    ("branching", "where"),
    [
        (lambda x: lax.cond(x[0] > 0, total, lambda x: x, x), r"branch \(cond\)"),
        (lambda x: lax.while_loop(lambda c: c[0] < 3, total, x), r"loop \(while_loop\)"),
        (lambda x: lax.while_loop(lambda c: total(c)[0] + x[0] < 3, lambda c: c, x), "loop"),
        (jax.jit(lambda x: lax.cond(x[0] > 0, jax.jit(total), lambda x: x, x)), "branch"),
    ],
)  # fmt: skip
def test_a_collective_that_not_all_replicas_come_to_is_refused(branching, where):
    with pytest.raises(ValueError, match=f"A collective .psum. is in a {where}"):
        outputs(lambda x, w: branching(x))


def test_a_branch_that_all_replicas_take_alike_may_meet():
    assert outputs(lambda x, w: lax.cond(total(x)[0] > 0, total, lambda x: x, x)) == [True]


def test_a_compiled_step_says_so_instead_of_waiting_for_ever():
    strategy = mirrored(2)

    def step(x):
        return lax.cond(number() == 0, lambda x: context().all_reduce("SUM", x), lambda x: x, x)

    value = each(strategy, jnp.float32)
    with pytest.raises(ValueError, match=r"is in a branch \(cond\)"):
        tf.function(lambda x: strategy.run(step, args=(x,)))(value)


def test_weights_that_go_through_a_jitted_update_stay_one_replicated_array():
    strategy = mirrored(2)

    @jax.jit
    def update(w, change):
        return w - 0.1 * change

    def step(w, x):
        change = context().all_reduce("MEAN", jax.grad(lambda w: ((w * x) ** 2).sum())(w))
        return update(w, change)

    value = each(strategy, jnp.float32)
    run = tf.function(lambda w, x: strategy.run(step, args=(w, x)))
    w = run(jnp.float32(1), value)
    assert isinstance(w, tf.distribute.Mirrored)
    assert isinstance(run(w, value), tf.distribute.Mirrored)
