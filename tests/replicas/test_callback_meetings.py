"""Meetings inside compiled programs: which replicas meet, and what happens if one does not arrive."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import context, each, mirrored, number, parts, replica_threads

from evenfeed.replicas.run import callback_meetings
from evenfeed.replicas.run import replica_threads as threads


def total(x):
    return context().all_reduce("SUM", x)


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(threads, "_LATE_SECONDS", 0.5)


def test_a_program_of_one_run_serves_the_next():
    strategy = mirrored(2)
    traced = []

    @jax.jit
    def inner(x):
        traced.append(number())
        return total(x)

    for time in range(3):
        value = each(strategy, lambda r, t=time: jnp.float32(r + t))
        assert [float(p) for p in parts(strategy, strategy.run(inner, args=(value,)))] == [1 + 2 * time] * 2  # fmt: skip
    assert traced == [0, 1], "once for each replica: what it closes over differs"


def test_replicas_whose_programs_were_compiled_at_other_times_meet():
    """The part of replica 1 has a new shape: its program is new, that of replica 0 is not."""
    strategy = mirrored(2)
    inner = jax.jit(lambda x: (total(x.sum()), total(x.max())))
    for lengths in ((3, 3), (3, 2), (4, 2), (3, 3)):
        value = each(strategy, lambda r, n=lengths: jnp.arange(n[r], dtype=jnp.float32) + r)
        sums, maxima = strategy.run(inner, args=(value,))
        rows = [np.arange(n) + r for r, n in enumerate(lengths)]
        assert [float(p) for p in sums.values] == [sum(row.sum() for row in rows)] * 2
        assert [float(p) for p in maxima.values] == [sum(row.max() for row in rows)] * 2


def test_a_program_and_plain_python_take_turns():
    strategy = mirrored(2)
    inner = jax.jit(lambda x: total(x) + 1)

    def step(x):
        for _ in range(3):
            x = inner(total(x)) - 1
        return x

    value = each(strategy, lambda r: jnp.float32(r + 1))
    assert [float(p) for p in parts(strategy, strategy.run(step, args=(value,)))] == [96.0] * 2


@pytest.mark.usefixtures("hurried")
def test_a_replica_that_skips_a_program_is_told_of():
    strategy = mirrored(2)
    inner = jax.jit(total)
    with pytest.raises(RuntimeError, match="do not meet at the same collective") as caught:
        strategy.run(lambda: inner(jnp.float32(1)) if number() == 0 else 1)
    assert "replica 0 at all_reduce of float32[] (tests" in str(caught.value)
    assert "replica 1 at the end" in str(caught.value)
    assert replica_threads() == []


@pytest.mark.usefixtures("hurried")
def test_a_replica_that_meets_in_python_instead_is_told_of():
    strategy = mirrored(2)
    inner = jax.jit(total)

    def step():
        x = jnp.float32(1)
        return inner(x) if number() == 0 else total(x)

    with pytest.raises(RuntimeError, match="do not meet at the same collective"):
        strategy.run(step)
    assert replica_threads() == []


@pytest.mark.usefixtures("hurried")
def test_replicas_whose_programs_meet_at_other_lines_are_told_so():
    strategy = mirrored(2)

    def one(x):
        return context().all_reduce("SUM", x)

    def other(x):
        return context().all_reduce("SUM", x * 2)

    with pytest.raises(RuntimeError, match="do not meet at the same collective"):
        strategy.run(lambda: jax.jit(one if number() == 0 else other)(jnp.float32(1)))


def test_an_error_ends_a_replica_that_waits_in_a_program():
    strategy = mirrored(2)
    inner = jax.jit(total)

    def step():
        if number() == 1:
            raise KeyError("mine")
        return inner(jnp.float32(1))

    with pytest.raises(KeyError, match="mine"):
        strategy.run(step)
    assert replica_threads() == []
    value = parts(strategy, strategy.run(lambda: inner(jnp.float32(1))))
    assert [float(part) for part in value] == [2.0, 2.0]


def test_an_error_in_a_callback_of_the_users_ends_the_run():
    strategy = mirrored(2)

    def callback(x):
        raise KeyError("mine")

    @jax.jit
    def inner(x):
        return total(jax.pure_callback(callback, jax.ShapeDtypeStruct((), jnp.float32), x))

    with pytest.raises(Exception, match="mine"):
        strategy.run(lambda: inner(jnp.float32(1)))
    assert replica_threads() == []


def test_runs_at_the_same_time_have_seats_of_their_own():
    strategy = mirrored(2)
    replicas = strategy.extended.replicas
    one, other = threads.ReplicaThreads(replicas), threads.ReplicaThreads(replicas)
    with callback_meetings.assign_seats(one) as first:
        with callback_meetings.assign_seats(other) as second:
            assert {seat.slot for seat in first} != {seat.slot for seat in second}
            assert (first[0].board.threads, second[1].board.threads) == (one, other)
        with callback_meetings.assign_seats(other) as third:
            assert third == second, "a seat that is free is taken: its programs are there"


def test_loops_of_two_threads_do_not_mix():
    strategy = mirrored(2)
    wrong = []

    def step(x):
        return jax.lax.fori_loop(0, 20, lambda i, c: total(c) / 2 + x, x)

    def work(mine):
        value = each(strategy, lambda r: jnp.float32(mine))
        for _ in range(5):
            found = [float(p) for p in parts(strategy, strategy.run(step, args=(value,)))]
            if found != [mine * 21.0] * 2:
                wrong.append((mine, found))

    threads = [threading.Thread(target=work, args=(mine,), daemon=True) for mine in (1, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong
