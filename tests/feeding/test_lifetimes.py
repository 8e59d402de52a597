"""How distributed iterators start, fail and end: threads, memory, errors, Ctrl-C, interpreter exit."""

import gc
import resource
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path

import pytest
from tests.feeding.distribution import (
    distributed,
    numbers,
    parts_of,
    strategy_of,
)
from tests.feeding.distribution import (
    feeding_threads as all_feeding_threads,
)
from tests.processes import wait_until
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import CancelledError

Dataset = tf.data.Dataset


def failing(x):
    if x == 7:
        raise KeyError("the seventh")
    return x


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_an_error_of_the_pipeline_comes_in_its_step_with_its_note(count, depth):
    dataset = numbers(range(10)).map(failing, vectorize=False).batch(1)
    iterator = iter(distributed(dataset, count, experimental_per_replica_buffer_size=depth))
    rows = []
    with pytest.raises(KeyError, match="the seventh") as caught:
        rows += [row for step in iterator for part in parts_of(step) for row in part]
    assert any("element 7" in note and "failing" in note for note in caught.value.__notes__)
    assert [parts_of(step)[0] for step in iterator] == [[8], [9]]


@pytest.fixture(autouse=True)
def _others():
    """The threads that other tests left running, such as those that interrupt iterators."""
    _left.clear()
    _left.extend(all_feeding_threads())


_left = []


def feeding_threads():
    return [thread for thread in all_feeding_threads() if thread not in _left]


@pytest.mark.parametrize("depth", [1, 5])
def test_an_error_of_the_pipeline_stops_the_thread_until_the_next_step(depth):
    wait_until(lambda: not feeding_threads())
    dataset = numbers(range(12)).map(failing, vectorize=False).batch(1)
    iterator = iter(distributed(dataset, 2, experimental_per_replica_buffer_size=depth))
    for number in range(7):
        assert parts_of(next(iterator)) == [[number], []]
    with pytest.raises(KeyError):
        next(iterator)
    wait_until(lambda: not feeding_threads())
    assert parts_of(next(iterator)) == [[8], []]
    wait_until(lambda: len(iterator._steps._shared._items) == min(depth, 3))
    assert [parts_of(step)[0] for step in iterator] == [[9], [10], [11]]


def test_an_error_of_the_pipeline_leaves_no_thread_behind():
    wait_until(lambda: not feeding_threads())
    before = threading.active_count()
    dataset = numbers(range(100)).map(failing, 2, vectorize=False).batch(1).prefetch(2)

    def train():
        for step in distributed(dataset, 2):
            parts_of(step)

    with pytest.raises(KeyError, match="the seventh"):
        train()
    gc.collect()  # the error referenced the frames, which referenced the iterator
    wait_until(lambda: threading.active_count() <= before)


def test_an_error_in_every_element_ends_where_the_data_ends():
    def bad(x):
        raise KeyError(int(x))

    spec = tf.TensorSpec([], tf.int32)
    dataset = numbers(range(5)).map(bad, vectorize=False, output_signature=spec).batch(1)
    iterator, errors = iter(distributed(dataset, 2)), []
    while True:
        try:
            next(iterator)
        except StopIteration:
            break
        except KeyError as error:
            errors.append(error.args[0])
    assert errors == [0, 1, 2, 3, 4]


def test_an_iterator_that_is_dropped_in_mid_epoch_frees_its_thread_and_its_steps():
    wait_until(lambda: not feeding_threads())
    freed = watch_mid_epoch()
    wait_until(lambda: not feeding_threads())
    gc.collect()
    assert [ref() for ref in freed] == [None] * 5


def watch_mid_epoch():
    """Start an iterator, and return the objects that should be freed with it."""
    dataset = distributed(numbers(range(1000)).batch(4), 2, experimental_per_replica_buffer_size=3)
    iterator = iter(dataset)
    step = next(iterator)
    items = iterator._steps._shared._items
    wait_until(lambda: len(items) == 3)
    return [weakref.ref(x) for x in (iterator._steps, step, *(item.value for item in items))]


def test_a_loop_that_is_left_frees_its_thread():
    wait_until(lambda: not feeding_threads())
    for _ in distributed(numbers(range(1000)).batch(4), 2):
        break
    wait_until(lambda: not feeding_threads())


def test_a_closed_iterator_says_so_and_a_new_one_reads():
    dataset = distributed(numbers(range(8)).batch(4), 2)
    iterator = iter(dataset)
    next(iterator)
    iterator.close()
    with error_saying(
        CancelledError,
        "The iterator is closed.",
        fix="make a new one: iter(distributed_dataset).",
    ):
        next(iterator)
    iterator.set_state(iter(dataset).get_state())
    assert len(list(iterator)) == len(list(dataset)) == 2


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_no_more_steps_are_alive_than_were_asked_for(depth):
    live = weakref.WeakSet()
    dataset = distributed(
        numbers(range(400)).batch(4), 2, experimental_per_replica_buffer_size=depth
    )
    iterator = iter(dataset)
    place = iterator._steps._shared._place

    def watched(columns):
        value = place(columns)
        live.add(value)
        return value

    iterator._steps._shared._place = watched
    most = 0
    for step in iterator:
        most = max(most, len(live))
        del step
    assert (
        most <= depth + 2
    )  # the prefetched steps, the current one, and the one that is being read


def test_inside_of_run_no_step_is_asked_for():
    strategy = strategy_of(2)
    iterator = iter(strategy.experimental_distribute_dataset(numbers(range(8)).batch(4)))
    with pytest.raises(
        ValueError, match=r"A replica asked for the next step of a distributed iterator inside run"
    ):
        strategy.run(lambda: next(iterator))
    assert parts_of(next(iterator)) == [[0, 1], [2, 3]]


def totals(strategy):
    """Return functions that sum steps in every way that a `function` body allows."""

    def total(x):
        return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(x,)), axis=None)

    @tf.function
    def loop(dataset):
        found = 0
        for x in dataset:
            found += total(x)
        return found

    @tf.function
    def with_break(dataset):
        found = 0
        for x in dataset:
            if found > 10:
                break
            found += total(x)
        return found

    @tf.function
    def with_return(dataset):
        for x in dataset:
            if (found := total(x)) > 20:
                return found
        return 0

    @tf.function
    def by_iterator(iterator):
        return total(next(iterator)) + total(iterator.get_next())

    @tf.function
    def by_optional(iterator):
        found = 0
        for _ in tf.range(10):
            step = iterator.get_next_as_optional()
            if not step.has_value():
                break
            found += total(step.get_value())
        return found

    return loop, with_break, with_return, by_iterator, by_optional


def test_distributed_datasets_go_through_functions():
    strategy = strategy_of(2)
    dataset = strategy.experimental_distribute_dataset(numbers(range(12)).batch(4))
    loop, with_break, with_return, by_iterator, by_optional = totals(strategy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of `function` about branches do not matter here
        for _ in range(2):
            assert int(loop(dataset)) == 66
            assert int(with_break(dataset)) == 0 + 1 + 2 + 3 + 4 + 5 + 6 + 7
            assert int(with_return(dataset)) == 4 + 5 + 6 + 7
        iterator = iter(dataset)
        assert int(by_iterator(iterator)) == 28
        assert int(by_optional(iterator)) == 8 + 9 + 10 + 11
        assert int(by_optional(iter(dataset))) == 66
    with pytest.raises(StopIteration):
        next(iterator)


PROGRAM = """
import os, signal, sys, threading, time
import evenfeed as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy()
def distributed(dataset, **options):
    return strategy.experimental_distribute_dataset(dataset, tf.distribute.InputOptions(**options))
"""

EXITS = """
iterators = [iter(distributed(tf.data.Dataset.range(10**6).map(lambda x: x * 2).batch(8).prefetch(2)))
             for _ in range(3)]
for iterator in iterators:
    next(iterator)
print("leaving")
"""

INTERRUPTED = """
def slow(x):
    time.sleep(0.03)
    return x
spec = tf.TensorSpec([], tf.int64)
data = tf.data.Dataset.range(10**6).map(slow, vectorize=False, output_signature=spec).batch(2)
iterator = iter(distributed(data, experimental_per_replica_buffer_size=DEPTH))
rows = []
for attempt in range(4):
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            step = next(iterator)
            rows += step.array.tolist()
    except KeyboardInterrupt:
        state = iterator.get_state()
    other = iter(distributed(data))
    other.set_state(state)
    assert next(other).array.tolist()[0] <= len(rows)
    other.close()
rows += next(iterator).array.tolist()
assert rows == list(range(len(rows))), rows
print("all", len(rows) > 8)
"""


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
def test_the_interpreter_exits_with_living_iterators():
    assert run(EXITS) == "leaving\n"


@pytest.mark.slow
@pytest.mark.parametrize("depth", [0, 1])
def test_ctrl_c_loses_no_row(depth):
    assert run(INTERRUPTED.replace("DEPTH", str(depth))) == "all True\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_iterators_go_far_with_bounded_memory_and_threads():
    dataset = distributed(Dataset.range(10**9).batch(8), 2)
    one, two = iter(dataset), iter(dataset)

    def go(steps):
        for _ in range(steps):
            first, second = next(one), next(two)
        return first, second

    go(10_000)
    before, threads = resident_bytes(), threading.active_count()
    first, second = go(40_000)  # 100,000 steps in all
    assert (
        parts_of(first)
        == parts_of(second)
        == [[399992, 399993, 399994, 399995], [399996, 399997, 399998, 399999]]
    )
    assert resident_bytes() - before < 20 * 2**20
    assert threading.active_count() <= threads


def resident_bytes():
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()
