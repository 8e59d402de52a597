"""Prefetched steps: their order, number and positions, and the end of the thread."""

import gc
import threading
import time
import weakref
from contextlib import suppress

import jax
import numpy as np
import pytest
from tests.feeding.distribution import feeding_threads
from tests.processes import wait_until

import evenfeed as tf
from evenfeed.core.errors import CancelledError, InvalidArgumentError
from evenfeed.feeding.ahead.prefetch import StepsAhead
from evenfeed.feeding.host_steps import HostSteps

DEPTHS = [0, 1, 5]


class Value:
    """A step that supports weak references, to see when it is freed."""

    def __init__(self, number):
        self.number = number


class Script(HostSteps):
    """Returns the numbers of a script, or raises its errors. An error in a list is raised once."""

    def __init__(self, script):
        self.script = script
        self.at = 0
        self.reads = []
        self.closed = False

    def read(self):
        self.reads.append(threading.current_thread().name)
        if self.at == len(self.script):
            raise StopIteration
        found = self.script[self.at]
        self.at += 1
        if callable(found):
            return found()
        if isinstance(found, list):
            if not found:
                return "again"
            raise found.pop()
        if isinstance(found, BaseException):
            raise found
        return found

    def state(self):
        return self.at

    def restore(self, state):
        self.at = state

    def close(self):
        self.closed = True


def ahead(script, depth, place=Value):
    steps = Script(script)
    return StepsAhead(lambda: steps, place, depth), steps


def numbers_of(steps):
    found = []
    while True:
        try:
            found.append(steps.take().number)
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001 - it has its place
            found.append(type(error))


def wait_until_full(steps, reads):
    wait_until(lambda: len(steps.reads) >= reads)


@pytest.mark.parametrize("depth", DEPTHS)
def test_steps_come_in_order_and_the_end_stays(depth):
    steps, _ = ahead(range(50), depth)
    assert numbers_of(steps) == list(range(50))
    for _ in range(2):
        with pytest.raises(StopIteration):
            steps.take()


@pytest.mark.parametrize("depth", DEPTHS)
def test_nothing_is_read_before_a_step_is_asked_for(depth):
    before = set(feeding_threads())  # from tests whose iterators are not garbage-collected yet
    steps, read = ahead(range(9), depth)
    assert (steps.state(), read.reads, set(feeding_threads()) - before) == (0, [], set())


@pytest.mark.parametrize("depth", DEPTHS)
def test_as_many_steps_as_asked_are_ready_and_no_more(depth):
    live = weakref.WeakSet()

    def place(number):
        value = Value(number)
        live.add(value)
        return value

    steps, read = ahead(range(100), depth, place)
    for number in range(8):
        value = steps.take()
        assert value.number == number
        wait_until_full(read, number + 1 + depth)
        del value
        time.sleep(0.01)  # enough time to read one step too many
        gc.collect(1)  # what is young: all objects of a long run take seconds
        assert (len(read.reads), len(live)) == (number + 1 + depth, depth)
    steps.close()


def test_the_thread_reads_while_the_consumer_is_busy():
    steps, read = ahead(range(10), 1)
    for number in range(5):
        steps.take()
        wait_until_full(read, number + 2)
    assert read.reads == ["MainThread", *["evenfeed-feed"] * 5]
    steps.close()


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_error_has_its_place_and_what_is_behind_it_comes(depth):
    steps, _ = ahead([0, 1, KeyError("bad"), 3, ValueError(), 5], depth)
    assert numbers_of(steps) == [0, 1, KeyError, 3, ValueError, 5]


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_step_that_cannot_be_placed_is_said_by_the_line_that_asks(depth):
    def place(number):
        if number == 1:
            raise InvalidArgumentError("1 does not fit.", fix="do otherwise.")
        return Value(number)

    steps, read = ahead(range(3), depth, place)
    assert steps.take().number == 0
    wait_until_full(read, 1 + min(depth, 1))
    with pytest.raises(InvalidArgumentError, match="1 does not fit") as caught:
        steps.take()
    assert "test_prefetch.py" in str(caught.value)
    assert steps.take().number == 2


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interruption_loses_no_step(depth, kind):
    steps, read = ahead([0, 1, [kind()], 3], depth)
    assert [steps.take().number for _ in range(2)] == [0, 1]
    wait_until_full(read, min(3, 2 + depth))
    assert steps.state() == 2
    with pytest.raises(kind):
        steps.take()
    assert steps.state() == 2
    assert numbers_of(steps) == ["again", 3]


def test_an_interruption_while_a_read_is_finished_loses_no_step():
    steps, read = ahead(range(4), 0)
    steps.take()
    shared = steps._shared
    shared._reader = threading.get_ident()  # as if Ctrl-C came between two lines
    read.at = 3
    assert numbers_of(steps) == [1, 2, 3]


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_position_counts_what_was_taken(depth):
    whole = [0, 1, KeyError, 3, 4, 5, 6, 7]
    script = [KeyError() if number is KeyError else number for number in whole]
    for taken in range(len(whole) + 1):
        steps, read = ahead(script, depth)
        for _ in range(taken):
            with suppress(KeyError):
                steps.take()
        if taken:
            end = 3 if taken <= 3 else len(whole) + 1  # nothing is prefetched after an error
            wait_until_full(read, min(taken + depth, end))
        assert steps.state() == taken
        fresh, _ = ahead(script, depth)
        fresh.restore(steps.state())
        assert numbers_of(fresh) == whole[taken:]
        steps.restore(taken // 2)
        assert numbers_of(steps) == whole[taken // 2 :]
        steps.close()


def test_a_forgotten_one_frees_its_thread_and_its_steps():
    live = []

    def place(number):
        value = Value(number)
        live.append(weakref.ref(value))
        return value

    wait_until(lambda: not feeding_threads())
    steps, read = ahead(range(1000), 3, place)
    steps.take()
    wait_until_full(read, 4)
    assert len(feeding_threads()) == 1
    del steps
    wait_until(lambda: not feeding_threads())
    gc.collect()
    assert [value() for value in live] == [None] * 4


def test_a_closed_one_says_so_and_frees_its_steps():
    steps, read = ahead(range(1000), 3)
    held = weakref.ref(steps.take())
    wait_until_full(read, 4)
    steps.close()
    assert (read.closed, held()) == (True, None)
    wait_until(lambda: not feeding_threads())
    with pytest.raises(CancelledError, match="The iterator is closed"):
        steps.take()


def test_one_that_is_closed_while_another_thread_waits_wakes_it():
    let_go = threading.Event()
    steps, read = ahead([0, let_go.wait], 1)
    steps.take()
    wait_until_full(read, 2)
    caught = []

    def work():
        try:
            steps.take()
        except CancelledError as error:
            caught.append(error)

    waiting = threading.Thread(target=work)
    waiting.start()
    closing = threading.Thread(target=steps.close)
    closing.start()
    waiting.join(20)
    assert len(caught) == 1
    let_go.set()
    closing.join(20)
    wait_until(lambda: not feeding_threads())


def test_a_position_is_taken_up_while_the_thread_is_inside_of_a_function(monkeypatch):
    monkeypatch.setattr("evenfeed.feeding.ahead.prefetch._JOIN", 0.05)
    let_go = threading.Event()
    made = []

    def make():
        made.append(Script([0, let_go.wait, 2, 3] if not made else [0, 1, 2, 3]))
        return made[-1]

    steps = StepsAhead(make, Value, 1)
    steps.take()
    wait_until_full(made[0], 2)
    steps.restore(1)
    assert numbers_of(steps) == [1, 2, 3]
    let_go.set()
    wait_until(lambda: not feeding_threads())


def test_steps_keep_the_width_of_the_first():
    def place(rows):
        return jax.device_put(np.int64(rows)).dtype

    for depth in DEPTHS:
        with jax.enable_x64(True):
            steps, _ = ahead(range(6), depth, place)
            kinds = [steps.take()]
        while True:
            try:
                kinds.append(steps.take())
            except StopIteration:
                break
        assert kinds == [np.dtype("int64")] * 6


def _after_a_read_step(iterator):
    """Let the thread read a step ahead, and return it as a run."""
    for _ in range(20):
        next(iterator)
        time.sleep(0.05)
        if (run := iterator.peek_run(4)).count == 1:
            return run
    raise AssertionError("the thread reads nothing ahead")


@pytest.mark.parametrize("is_read", [False, True])
def test_steps_are_not_put_back_after_another_thread_has_read_on(is_read):
    iterator = _rows(80)
    run = _after_a_read_step(iterator) if is_read else iterator.peek_run(4)
    assert iterator.take_run(run)
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(float(next(iterator)[0, 0])))
    thread.start()
    thread.join()
    iterator.return_run(run)
    state = iterator.get_state()
    following = float(next(iterator)[0, 0])
    iterator.set_state(state)
    assert float(next(iterator)[0, 0]) == following == elsewhere[0] + 2


def test_a_step_that_was_taken_as_a_run_leaves_the_devices():
    iterator = _rows(80)
    run = _after_a_read_step(iterator)
    assert iterator.take_run(run)
    del run
    gc.collect()
    assert sum(array.shape == (2, 37) for array in jax.live_arrays()) <= 1  # of the following step


def _rows(count):
    rows = tf.data.Dataset.range(count, output_type=tf.float32).map(lambda x: tf.fill([37], x))
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    return iter(strategy.experimental_distribute_dataset(rows.batch(2)))
