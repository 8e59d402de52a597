import gc
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of
from tests.unknown import Watched, count

import evenfeed as tf
from evenfeed.core.errors import CancelledError, InvalidArgumentError
from evenfeed.plan.buffering import AUTOTUNE, Prefetch
from evenfeed.plan.sources import FromGenerator, Range
from evenfeed.runtime.operators.buffering import ReadAhead
from evenfeed.runtime.operators.sources import PullElements

pytestmark = pytest.mark.timeout(20)

INT = tf.TensorSpec([], tf.int32)


def threads():
    return [t for t in threading.enumerate() if t.name == "evenfeed-prefetch"]


def until(condition):
    """Wait for another thread; the test's own timeout ends a wait in vain."""
    while not condition():
        time.sleep(0.002)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    if threads():  # collecting the garbage of a long run takes seconds
        gc.collect()
    until(lambda: not threads())


def values_of(operator, most=3):
    return [row if isinstance(row, type) else row[0][2] for row in rows_of(operator, most)]


@pytest.mark.parametrize("buffer", [1, 2, 7, 100, AUTOTUNE])
@pytest.mark.parametrize("most", [1, 3, 50])
def test_reading_ahead_changes_nothing(buffer, most):
    operator = ReadAhead(count(20), buffer)
    assert values_of(operator, most) == list(range(20))
    assert operator.read(1) is None
    operator.close()


@pytest.mark.parametrize("buffer", [1, 4])
def test_no_more_is_read_ahead_than_asked_for(buffer):
    drops = Watched(*range(100))
    operator = ReadAhead(drops, buffer)
    operator.read(1)
    until(lambda: drops.next >= 1 + buffer)
    time.sleep(0.05)
    assert drops.next == 1 + buffer
    operator.close()
    assert drops.closed


@pytest.mark.parametrize("buffer", [2, AUTOTUNE])
def test_slow_elements_come_one_by_one_however_many_are_asked_for(buffer):
    class SlowDrops(Watched):
        def read(self, most):
            time.sleep(0.03)  # longer than a trial of more may take
            return super().read(most)

    drops = SlowDrops(*range(100))
    operator = ReadAhead(drops, buffer)
    for _ in range(3):
        operator.read(1000)
    until(lambda: operator.fill()[0] == 2)
    time.sleep(0.1)
    assert drops.next == 3 + 2
    assert set(drops.asked) == {1}
    operator.close()


def test_nothing_is_read_before_the_first_read():
    drops = Watched(1, 2)
    ReadAhead(drops, 2)
    assert drops.next == 0
    assert not threads()


def test_errors_come_in_their_place():
    operator = ReadAhead(Watched(1, ValueError("bad"), 3), 5)
    assert values_of(operator) == [1, ValueError, 3]
    operator.close()


def test_what_ends_a_thread_ends_the_reads():
    class Leaving(Watched):
        def read(self, most):
            raise SystemExit

    operator = ReadAhead(Leaving(), 1)
    with pytest.raises(SystemExit):
        operator.read(1)
    assert operator.read(1) is None


@settings(max_examples=30)
@given(
    st.lists(st.one_of(st.integers(0, 9), st.just("x")), max_size=8),
    st.sampled_from([1, 2, AUTOTUNE]),
)
def test_a_position_counts_what_was_taken(values, buffer):
    def make():
        return ReadAhead(PullElements(FromGenerator(lambda: iter(values), INT)), buffer)

    assert_resumes(make, 2)


def test_a_position_in_the_middle_of_a_block_is_exact():
    operator = ReadAhead(count(20), 8)
    operator.read(5)
    until(lambda: operator._shared._items)
    operator.read(2)
    before, used = state = operator.state()
    operator.close()
    assert (before, used) == (5, 2)
    fresh = ReadAhead(count(20), 8)
    fresh.restore(state)
    assert values_of(fresh) == list(range(7, 20))
    fresh.close()


def test_an_operator_that_is_read_can_be_restored():
    operator = ReadAhead(count(9), 2)
    start = operator.state()
    operator.read(3)
    operator.restore(start)
    assert values_of(operator) == list(range(9))
    operator.close()


def test_a_forgotten_operator_stops_its_thread():
    operator = ReadAhead(Watched(*range(100)), 2)
    operator.read(1)
    assert len(threads()) == 1
    del operator
    gc.collect()
    until(lambda: not threads())


def test_threads_above_threads_stop_together():
    operator = ReadAhead(ReadAhead(count(10**9), 2), 2)
    operator.read(1)
    assert len(threads()) == 2
    operator.close()
    until(lambda: not threads())


def test_closing_wakes_who_waits():
    class Stuck(Watched):
        release = threading.Event()

        def read(self, most):
            self.release.wait(5)
            return super().read(most)

    stuck = Stuck(1)
    operator, caught = ReadAhead(stuck, 1), []

    def wait():
        try:
            operator.read(1)
        except CancelledError as error:
            caught.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(threads)
    operator._shared.stop()
    waiting.join(5)
    stuck.release.set()
    assert len(caught) == 1


def test_the_source_is_read_while_the_consumer_works():
    class Noting(Watched):
        reads = 0

        def read(self, most):
            self.reads += 1
            return super().read(1)

    source = Noting(*range(10))
    operator = ReadAhead(source, 4)
    operator.read(1)
    until(lambda: source.reads > 1)  # nobody asks for more: it reads ahead by itself
    operator.close()


PROGRAM = """
from tests.unknown import count
from evenfeed.runtime.operators.buffering import ReadAhead
import time

class Slow(type(count(1)).__mro__[1]):
    def read(self, most):
        time.sleep({sleep})
        return count(5).read(most)
    def state(self): return 0
    def restore(self, state): pass

operator = ReadAhead(Slow(), 3)
if {read}: operator.read(1)
{end}
"""


@pytest.mark.parametrize(
    ("sleep", "end", "code"),
    [
        (0, "", 0),
        (0.2, "", 0),
        (0, "raise KeyboardInterrupt", 130),
        (0, "import os, signal; os.kill(os.getpid(), signal.SIGINT); time.sleep(3)", 130),
    ],
)
def test_no_thread_outlives_the_interpreter(sleep, end, code):
    program = PROGRAM.format(sleep=sleep, read=True, end=end)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=15, check=False, text=True
    )
    assert done.returncode in (code, -2 if code else 0), done.stderr
    assert "Fatal" not in done.stderr


def test_a_negative_buffer_is_refused():
    with pytest.raises(InvalidArgumentError, match="buffer_size must be at least 0"):
        Prefetch(Range(0, 3), -5)
