"""A replica's trace, cut into segments at its collectives."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from tests.mirroring import mirrored

from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.run.uneven_segments import cut, run_collectives

AXIS = "replica"


def total(x):
    return lax.psum(x, AXIS)


def pieces(function, x=None):
    given = jnp.ones(2) if x is None else x
    closed = jax.make_jaxpr(function, axis_env=[(AXIS, 3)])(jnp.int32(0), given)
    return cut(closed, closed.jaxpr.invars[0], (AXIS,))


def alone(function, x):
    """Run the segments for one replica, as if the two others had the same values."""
    made = pieces(function)
    held = dict(zip(made.inputs, [jnp.int32(1), x], strict=True))
    summed = []
    for segment in made.segments:
        gives, operands = segment.run([held[name] for name in segment.needs], summed)
        held.update(zip(segment.gives, gives, strict=True))
        summed = [operand * 3 for operand in operands]
    return [held[out].tolist() for out in made.outputs]


@pytest.mark.parametrize(
    ("function", "count", "expected"),
    [
        (lambda i, x: (x * 2,), 1, [[2.0, 2.0]]),
        (lambda i, x: (x,), 1, [[1.0, 1.0]]),
        (lambda i, x: (total(x),), 2, [[3.0, 3.0]]),
        (lambda i, x: (total(x) + x, i), 2, [[4.0, 4.0], 1]),
        (lambda i, x: (total(total(x) * x),), 3, [[9.0, 9.0]]),
        (lambda i, x: (total(x), total(x * 2), total([x, x.sum()])[1]), 2, [[3.0, 3.0], [6.0, 6.0], 6.0]),
        (lambda i, x: (total(x) + 1, total(jnp.sin(x) * 0)), 2, [[4.0, 4.0], [0.0, 0.0]]),
        (lambda i, x: (lax.axis_index(AXIS) + x, total(lax.axis_index(AXIS))), 2, [[2.0, 2.0], 3]),
    ],
)  # fmt: skip
def test_pieces_give_what_the_whole_gives(function, count, expected):
    assert len(pieces(function).segments) == count
    assert alone(function, jnp.ones(2)) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: (lax.pmax(x, AXIS), total(x)), [[2.0, 3.0, 4.0], [3.0, 6.0, 9.0]]),
        (lambda x: (lax.all_gather(x[:1], AXIS, tiled=True),), [[0.0, 1.0, 2.0]]),
        (lambda x: (lax.pmin(total(x) - x, AXIS),), [[1.0, 3.0, 5.0]]),
    ],
)
def test_collectives_of_any_kind_run_between_segments(function, expected):
    strategy = mirrored(3)
    replicas = strategy.extended.replicas
    xs = [jnp.arange(3.0) + r for r in range(3)]
    made = pieces(lambda i, x: function(x), jnp.zeros(3))
    held = [dict(zip(made.inputs, [jnp.int32(r), xs[r]], strict=True)) for r in range(3)]
    received = [[]] * 3
    for segment, calls in zip(made.segments, made.collectives, strict=True):
        rows = [
            segment.run([own[name] for name in segment.needs], each)
            for own, each in zip(held, received, strict=True)
        ]
        for own, (gives, _) in zip(held, rows, strict=True):
            own.update(zip(segment.gives, gives, strict=True))
        placed = [
            [replicas.to_replica(x, r) for x in operands] for r, (_, operands) in enumerate(rows)
        ]
        received = run_collectives(replicas, calls, placed) if calls else []
    for own in held:
        assert [own[out].tolist() for out in made.outputs] == expected


def test_sums_that_do_not_wait_for_each_other_are_one_collective():
    made = pieces(lambda i, x: [total(x * k) for k in range(5)])
    assert [len(collective) for collective in made.collectives] == [5, 0]


@pytest.mark.parametrize(
    "function",
    [
        lambda i, x: jax.jit(total)(x),
        lambda i, x: lax.scan(lambda c, _: (total(c), None), x, None, length=2)[0],
        lambda i, x: lax.ppermute(x, AXIS, [(0, 1), (1, 2), (2, 0)]),
        lambda i, x: lax.psum(x, AXIS, axis_index_groups=[[0], [1, 2]]),
    ],
)
def test_collectives_inside_functions_or_with_other_results_cannot_be_cut(function):
    with pytest.raises(Unstaged):
        pieces(function)


def test_what_is_done_to_the_world_keeps_its_order(capfd):
    def noisy(i, x):
        y = total(x)
        jax.debug.print("first {}", y[0], ordered=True)
        jax.debug.print("second {}", x[0], ordered=True)
        return (y,)

    alone(noisy, jnp.ones(2))
    jax.effects_barrier()
    assert capfd.readouterr().out == "first 3.0\nsecond 1.0\n"
