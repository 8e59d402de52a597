"""Functions that compute the same share a program, and no others do."""

import gc
import weakref
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.runtime.functions.program_keys import SharedPrograms, key_of

ONES, TWOS = np.ones(3), np.full(3, 2.0)


def key(function, shape=(3,), dtype=np.float64):
    with jax.enable_x64(True):
        return key_of(jax.make_jaxpr(partial(function))(jax.ShapeDtypeStruct(shape, dtype)))


def jitted(table):
    return jax.jit(lambda x: x + table)


def chosen(yes, no):
    return lambda x: jax.lax.cond(x[0] > 0, lambda y: y * yes, lambda y: y * no, x)


PAIRS = {
    "operations": (jnp.sin, jnp.cos),
    "the order of operands": (lambda x: x - x[0], lambda x: x[0] - x),
    "which result is used": (lambda x: x, lambda x: x * 1),
    "constants": (lambda x: x + ONES, lambda x: x + TWOS),
    "constants in jitted functions": (jitted(ONES), jitted(TWOS)),
    "constants in branches": (chosen(ONES, TWOS), chosen(TWOS, ONES)),
    "literals that print alike": (lambda x: x * 1.0000001, lambda x: x * 1.00000011),
    "settings": (jnp.sort, lambda x: jnp.sort(x, stable=False)),
    "loops": (
        lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * 2.0, x),
        lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * 3.0, x),
    ),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_a_key_is_equal_for_the_same_computation_alone(pair):
    one, two = pair
    assert key(one) == key(one) is not None
    assert key(two) == key(two) is not None
    assert key(one) != key(two)


def test_a_key_depends_on_shapes_and_dtypes():
    assert len({key(jnp.sin), key(jnp.sin, (4,)), key(jnp.sin, dtype=np.float32)}) == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + jax.random.uniform(jax.random.key(3), (3,)),
        lambda x: jax.pure_callback(np.sin, x, x),
    ],
)
def test_what_cannot_be_compared_has_no_key(function):
    assert key(function) is None


def scaled(number):
    return lambda x: jnp.sort(x * jnp.arange(3.0) + number)


@pytest.fixture
def compiled(monkeypatch):
    """Count the programs that are compiled."""
    count, of = [], SharedPrograms.of

    def counted(programs, asked, compile_it):
        return of(programs, asked, lambda: count.append(1) or compile_it())

    monkeypatch.setattr(SharedPrograms, "of", counted)
    return count


def first(dataset):
    return next(iter(dataset)).tolist()


def test_a_function_that_is_made_again_is_compiled_once(compiled):
    found = [first(tf.data.Dataset.range(1, 9).map(scaled(17))) for _ in range(3)]
    assert found == [[17.0, 18.0, 19.0]] * 3
    assert len(compiled) == 1
    assert first(tf.data.Dataset.range(1, 9).map(scaled(18))) == [18.0, 19.0, 20.0]
    assert len(compiled) == 2


def test_a_program_keeps_no_user_object():
    class Held:
        """Something large."""

    held = Held()
    is_held = weakref.ref(held)

    def function(x, held=held):
        return jnp.sort(x * jnp.arange(4.0) if held else x)

    assert first(tf.data.Dataset.range(1, 9).map(function)) == [0.0, 1.0, 2.0, 3.0]
    del held, function
    gc.collect()
    assert is_held() is None
