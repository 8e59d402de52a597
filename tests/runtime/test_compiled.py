import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.runtime.functions import blockwise, compiled
from evenfeed.runtime.functions.compiled import Compiled
from evenfeed.runtime.functions.vectorise import BlockProgram, Row, traced

ROW = (Row((33,), np.dtype("float32")),)


def calling(function):
    def call(leaves):
        return None, [function(*leaves)]

    return call


def sized(function, rows=ROW):
    programs = Compiled(calling(function))
    return programs.add(rows, traced(calling(function), rows))


def numbers(count):
    return np.random.default_rng(0).normal(size=(count, 33)).astype(np.float32)


# XLA computes other last bits for these when there are more rows.
SENSITIVE = [jnp.sum, jax.nn.softmax, lambda a: (a - a.mean()) / a.std(), lambda a: a @ a]


@pytest.mark.parametrize("function", SENSITIVE)
def test_an_element_is_the_same_to_the_last_bit_however_it_is_read(function):
    program, rows = sized(function), numbers(5000)
    (whole,), _ = program.run([rows], 5000)
    for start, length in [(0, 1), (1, 2), (7, 16), (100, 333), (999, 1024), (4999, 1)]:
        (part,), _ = program.run([rows[start : start + length]], length)
        assert part.tobytes() == whole[start : start + length].tobytes()


@pytest.mark.parametrize("function", SENSITIVE)
def test_threads_that_share_the_calls_return_the_same_bits(function, monkeypatch):
    rows = numbers(5000)
    (alone,), _ = sized(function).run([rows], 5000)
    monkeypatch.setattr(compiled, "_WORTH_THREADS", 0.0)
    shared = []
    done = compiled.done_by_threads
    monkeypatch.setattr(compiled, "done_by_threads", lambda *a: shared.append(a[2]) or done(*a))
    program = sized(function)
    for length in (5000, 4999, 1):
        (out,), _ = program.run([rows[:length]], length, at_once=3)
        assert out.tobytes() == alone[:length].tobytes()
    assert shared == [3, 3]


def test_calls_that_are_soon_done_are_not_shared_among_threads(monkeypatch):
    monkeypatch.setattr(compiled, "_WORTH_THREADS", 9.0)
    monkeypatch.setattr(compiled, "done_by_threads", None)
    rows = numbers(5000)
    (out,), _ = sized(jnp.sum).run([rows], 5000, at_once=2)
    np.testing.assert_allclose(out, rows.sum(1), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("parallel_calls", "at_once"), [(None, 4), (-1, 4), (1, 1), (3, 3), (9, 4)]
)
def test_a_compiled_function_uses_the_cores_unless_the_user_says_otherwise(
    monkeypatch, parallel_calls, at_once
):
    monkeypatch.setattr(blockwise, "cores", lambda: 4)
    assert blockwise.calls_at_once(1, parallel_calls) == at_once
    assert blockwise.calls_at_once(2, parallel_calls) == 1


def test_a_program_is_started_with_one_length(monkeypatch):
    lengths = set()
    start = BlockProgram.start
    monkeypatch.setattr(
        BlockProgram,
        "start",
        lambda self, cols, held: lengths.add(len(cols[0])) or start(self, cols),
    )
    program = sized(jnp.sum)
    for length in (1, 2, 4, 100, 9000):
        (out,), _ = program.run([numbers(length)], length)
        np.testing.assert_allclose(out, numbers(length).sum(1), rtol=1e-3, atol=1e-5)
    assert len(lengths) == 1


@pytest.mark.parametrize(
    ("function", "most"),
    [
        (jnp.exp, compiled._CALL_BYTES // 264),
        (lambda a: jax.lax.fori_loop(0, 10_000, lambda _, x: jnp.sin(x), a), 1),
        (lambda a: jax.lax.while_loop(lambda x: x[0] < 9, lambda x: x + 1, a), 8),
    ],
)
def test_what_takes_long_is_computed_for_few_at_a_time(function, most):
    assert most // 2 < sized(function).length <= most


def test_simple_arithmetic_is_not_compiled():
    dataset = tf.data.Dataset.range(5).map(lambda x: x * 3 + 1)
    assert list(dataset.as_numpy_iterator()) == [1, 4, 7, 10, 13]
    assert dataset._plan.function.compilations == 0
