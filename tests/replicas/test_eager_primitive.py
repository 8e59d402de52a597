"""Collectives inside JAX transformations: the same results in plain Python and compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from tests.mirroring import WAYS, context, each, mirrored, number, parts, run


def total(x, op="SUM"):
    return context().all_reduce(op, x)


def weight():
    return jnp.float32(number() + 1)


def loss(x, op="SUM"):
    return jnp.sum(total(x, op) ** 2) * weight()


def with_integers(x):
    both = total({"x": x, "n": 3})
    return (both["x"] ** 2).sum() * both["n"]


# What a replica does with its x = [1, 2] * (r + 1), and what it gets, as a function of all replicas' xs.
def summed(xs):
    return [sum(xs)] * len(xs)


def through_sum(xs):
    every = sum(2 * sum(xs) * (r + 1) for r in range(len(xs)))
    return [every] * len(xs)


CASES = {
    "jit": (jax.jit(total), summed),
    "jit without arguments": (
        lambda x: jax.jit(lambda: total(1.0))(),
        lambda xs: [len(xs)] * len(xs),
    ),
    "scan": (
        lambda x: lax.scan(lambda c, _: (total(c, "MEAN") + x, None), x, None, length=2)[0],
        lambda xs: [2 * np.mean(xs, 0) + x for x in xs],
    ),
    "scan that returns": (
        lambda x: lax.scan(lambda c, y: (c, total(y)), 0, x)[1],
        summed,
    ),
    "fori": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: total(c, "MEAN") + i, x),
        lambda xs: [np.mean(xs, 0) + 3] * len(xs),
    ),
    "while": (
        lambda x: lax.while_loop(lambda c: total(c.sum()) < 100, lambda c: c * 2, x),
        lambda xs: [x * 2 ** np.ceil(np.log2(100 / np.sum(xs))) for x in xs],
    ),
    "cond": (
        lambda x: lax.cond(total(x)[0] > 2, total, lambda x: x, x),
        summed,
    ),
    "vmap": (jax.vmap(total), summed),
    "vmap of one of two": (
        lambda x: jax.vmap(lambda a: total({"a": a, "b": x}))(x)["b"],
        lambda xs: [np.stack([sum(xs)] * 2)] * len(xs),
    ),
    "vmap of gather": (
        jax.vmap(lambda a: context().all_gather(a[None], 0)),
        lambda xs: [np.stack(xs, 1)] * len(xs),
    ),
    "grad": (jax.grad(loss), through_sum),
    "jit of grad": (jax.jit(jax.grad(loss)), through_sum),
    "grad of jit": (jax.grad(jax.jit(loss)), through_sum),
    "grad of checkpoint": (jax.grad(jax.checkpoint(loss)), through_sum),
    "grad of vmap": (
        jax.grad(lambda x: jax.vmap(lambda a: total(a) ** 2)(x).sum() * weight()),
        through_sum,
    ),
    "grad of cond": (
        jax.grad(lambda x: lax.cond(True, loss, lambda x: jnp.float32(0), x)),
        through_sum,
    ),
    "grad of scan": (
        jax.grad(
            lambda x: lax.scan(lambda c, _: (total(c), None), x, None, length=2)[0].sum()
        ),
        lambda xs: [np.full(2, len(xs) ** 2.0)] * len(xs),
    ),
    "value and grad with aux": (
        lambda x: jax.value_and_grad(lambda x: (loss(x), {"x": x}), has_aux=True)(x)[1],
        through_sum,
    ),
    "jvp": (
        lambda x: jax.jvp(total, (x,), (x * 2,))[1],
        lambda xs: [2 * sum(xs)] * len(xs),
    ),
    "jvp of grad": (
        lambda x: jax.jvp(jax.grad(loss), (x,), (x * 3,))[1],
        lambda xs: [3 * change for change in through_sum(xs)],
    ),
    "integers among floats": (
        jax.grad(with_integers),
        lambda xs: [2 * sum(xs) * 3 * len(xs) ** 2] * len(xs),
    ),
    "a constant": (
        jax.grad(lambda x: (x * total(2.0)).sum()),
        lambda xs: [np.full(2, 2.0 * len(xs))] * len(xs),
    ),
    "large arrays": (
        lambda x: jax.jit(lambda x: total(jnp.broadcast_to(x, (200_000, 2))))(x)[-1],
        summed,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "count"),
    [(case, 2) for case in CASES] + [(case, 3) for case in ("scan", "cond", "grad of jit")],
)
@pytest.mark.parametrize("way", WAYS)
def test_collectives_work_inside_of_transformations(case, way, count):
    step, expected = CASES[case]
    strategy = mirrored(count)
    xs = [np.array([1.0, 2.0], np.float32) * (r + 1) for r in range(count)]
    value = each(strategy, lambda r: jnp.asarray(xs[r]))
    for _ in range(2):  # the second time reuses the programs of the first
        found = parts(strategy, run(way, strategy, step, value))
        for one, other in zip(found, expected(xs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
