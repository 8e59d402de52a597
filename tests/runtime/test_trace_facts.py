import numpy as np
import pytest

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.runtime.functions.trace_facts import work_of

W = np.ones((32, 16), np.float32)
TABLE = jnp.ones((10_000, 8))


def turn(_, x):
    return x * 2


@pytest.mark.parametrize(
    ("function", "work"),
    [
        (lambda x: x, 0),
        (lambda x: x * 2 - 1, 64),
        (jnp.sum, 32),
        (lambda x: x @ W, 512),
        (jax.jit(lambda x: x * 2), 32),
        (jnp.sin, 8 * 32),
        (jnp.sort, 24 * 32),
        (lambda x: jax.lax.fori_loop(0, 10, turn, x), 320),
    ],
)
def test_the_work_is_the_numbers_that_are_computed(function, work):
    found = work_of(jax.make_jaxpr(function)(np.ones(32, np.float32)).jaxpr)
    assert work <= found <= work + 32  # plus some for the loop counter


@pytest.mark.parametrize(
    "pick",
    [lambda x: TABLE[x[0].astype(int)], lambda x: jax.lax.dynamic_slice(TABLE, (3, 0), (2, 8))],
)
def test_picking_rows_of_a_table_does_not_read_all_of_it(pick):
    found = work_of(jax.make_jaxpr(pick)(np.ones(32, np.float32)).jaxpr)
    assert found < 1000


def test_a_loop_without_a_known_end_is_long():
    def function(x):
        return jax.lax.while_loop(lambda y: y[0] < 9, lambda y: y + 1, x)

    assert work_of(jax.make_jaxpr(function)(np.ones(32, np.float32)).jaxpr) > 32 * 1000


def test_matrices_are_more_work_than_their_numbers():
    found = work_of(jax.make_jaxpr(jnp.linalg.cholesky)(np.eye(8, dtype=np.float32)).jaxpr)
    assert found >= 8**3
