"""A map in threads: elements are handed out in runs, no element waits for another, and AUTOTUNE never loses."""

import json
import threading
import time

import numpy as np
import pytest
from tests.resuming import assert_resumes, rows_of

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.core.callsite import Origin
from evenfeed.core.concurrency.threads import ThreadPool
from evenfeed.plan.sources import Range
from evenfeed.runtime.functions.row_function import trace
from evenfeed.runtime.operators import thread_tuning
from evenfeed.runtime.operators.sources import Numbers
from evenfeed.runtime.operators.thread_map import MapInThreads, _RunPace
from evenfeed.runtime.operators.thread_tuning import Tuner
from evenfeed.runtime.positions.orders import Forward
from evenfeed.runtime.positions.rows import Walk

NUMBER = tf.TensorSpec([], tf.int64)


def function(call):
    return trace(call, NUMBER, Origin("train.py", 12), vectorize=False, output_signature=NUMBER)


def in_threads(call, count=40, threads=2, **options):
    return MapInThreads(
        Walk(Numbers(Range(0, count)), Forward(count)), function(call), threads, **options
    )


def picky(x):
    if x % 7 == 3:
        raise KeyError(int(x))
    return x * 10


def in_runs(call=picky, rows=8, **options):
    """Return a map whose runs are this long from the start."""
    operator = in_threads(call, **options)
    operator._pace.rows = rows
    return operator


@pytest.mark.parametrize("make", [in_threads, in_runs, lambda call: in_threads(call, tuned=True)])
def test_elements_keep_their_order_and_resume_is_exact(make):
    rows = assert_resumes(lambda: make(picky), 1, 3, 50)
    expected = [KeyError if x % 7 == 3 else 10 * x for x in range(40)]
    assert [row if row is KeyError else row[0][2] for row in rows] == expected


def test_a_fast_function_gets_many_elements_for_each_task(monkeypatch):
    tasks = []
    submit = ThreadPool.submit
    monkeypatch.setattr(
        ThreadPool, "submit", lambda pool, call: tasks.append(1) or submit(pool, call)
    )
    operator = in_threads(lambda x: x, count=3000)
    assert len(rows_of(operator, 100, limit=3000)) == 3000
    operator.close()
    assert len(tasks) < 1500


def test_a_slow_function_gets_one_element_for_each_task():
    operator = in_threads(lambda x: time.sleep(0.002) or x, count=20)
    assert len(rows_of(operator, 5)) == 20
    assert operator._pace.rows == 1
    operator.close()


def test_a_slow_function_is_called_for_few_elements_however_many_are_asked_for():
    operator = in_threads(lambda x: time.sleep(0.002) or x, count=40, tuned=True)
    assert operator._is_here
    assert operator.read(40).length == 1
    assert operator.read(40).length == 1
    operator.close()


def test_the_reading_thread_takes_more_elements_at_a_time_than_the_others():
    pace, block = _RunPace(), Block((np.arange(64),), 64)
    for _ in range(20):
        pace.learn(block, 64 * 1e-5)
    assert 3 * pace.rows < pace.rows_here < 256


def test_an_element_that_waits_for_a_later_one_of_its_run_gets_it():
    later = threading.Event()

    def waits(x):
        if x == 1:
            assert later.wait(30)
        if x == 2:
            later.set()
        return x

    operator = in_runs(waits, count=8)
    assert [row[0][2] for row in rows_of(operator, 8)] == list(range(8))
    operator.close()


def test_elements_before_one_that_hangs_in_the_same_run_are_delivered():
    go = threading.Event()

    def hangs(x):
        if x == 3:
            assert go.wait(30)
        return x

    operator = in_runs(hangs, count=8)
    found = []
    while len(found) < 3:
        found += operator.read(3 - len(found)).columns[0].tolist()
    assert found == [0, 1, 2]
    go.set()
    assert [row[0][2] for row in rows_of(operator, 8)] == [3, 4, 5, 6, 7]
    operator.close()


def test_out_of_order_threads_take_several_quick_elements_at_a_time():
    operator = in_runs(in_order=False)
    assert operator.together == 8
    assert len(rows_of(operator, 5)) == 40
    operator.close()


def test_out_of_order_no_element_waits_for_one_that_hangs_in_its_run():
    go = threading.Event()

    def hangs(x):
        if x == 1:
            assert go.wait(30)
        return x

    make = lambda: in_runs(hangs, count=40, in_order=False)  # noqa: E731
    operator, found = make(), []
    while len(found) < 39:
        found += operator.read(4).columns[0].tolist()
    assert sorted(found) == [0, *range(2, 40)]
    state = json.loads(json.dumps(operator.state()))
    go.set()
    assert [row[0][2] for row in rows_of(operator, 4)] == [1]
    operator.close()
    again = make()
    again.restore(state)
    assert [row[0][2] for row in rows_of(again, 4)] == [1]
    again.close()


def test_out_of_order_several_elements_of_a_run_may_hang():
    go = threading.Event()

    def hangs(x):
        if x in {1, 2, 5}:
            assert go.wait(30)
        return x

    operator, found = in_runs(hangs, count=16, threads=4, in_order=False), []
    while len(found) < 13:
        found += operator.read(4).columns[0].tolist()
    assert not {1, 2, 5} & set(found)
    go.set()
    assert sorted(row[0][2] for row in rows_of(operator, 4)) == [1, 2, 5]
    operator.close()


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the tuner by a number that the test sets."""
    now = [100.0]
    monkeypatch.setattr(thread_tuning, "perf_counter", lambda: now[0])
    return now


def choices(clock, here, in_threads, rounds=2000):
    """Return the ways after a simulated run, in which an element takes this long each way."""
    tuner = Tuner(2, function(picky))
    for _ in range(rounds):
        clock[0] += here if tuner.is_here else in_threads
        tuner.learn(1, is_settled=True)
    return tuner


def test_threads_are_chosen_if_they_are_faster(clock):
    tuner = choices(clock, here=0.001, in_threads=0.0005)
    assert not tuner.is_here
    assert tuner._function.record.is_called_here is False


@pytest.mark.parametrize("each", [0.001, 0.002])
def test_threads_that_are_no_faster_are_not_used(clock, each):
    tuner = choices(clock, here=0.001, in_threads=each)
    assert tuner.is_here
    assert tuner._function.record.is_called_here


@pytest.mark.parametrize(("each", "is_called_here"), [(0.0015, None), (0.004, True)])
def test_threads_that_are_much_slower_are_tried_once(clock, each, is_called_here):
    tuner = choices(clock, here=0.001, in_threads=each, rounds=40)
    assert tuner._function.record.is_called_here is is_called_here


def test_the_other_way_is_tried_again_later(clock):
    tuner = choices(clock, here=0.001, in_threads=0.002)
    clock[0] += 1000.0
    for _ in range(200):
        clock[0] += 0.004 if tuner.is_here else 0.002
        tuner.learn(1, is_settled=True)
    assert not tuner.is_here


def test_explain_says_that_threads_do_not_help():
    numbers = tf.data.Dataset.range(4)
    dataset = numbers.map(picky, tf.data.AUTOTUNE, vectorize=False, output_signature=NUMBER)
    dataset._plan.function.record.is_called_here = True
    assert "per element in the reading thread" in str(dataset.explain())
    assert "AUTOTUNE found threads no faster; processes=True may help" in str(dataset.explain())
