"""While a consumer does next to nothing between two reads, it reads itself: handing over would take longer."""

import threading

import pytest
from tests.resuming import assert_resumes

import evenfeed as tf
from evenfeed.plan.sources import Range
from evenfeed.runtime.build import build
from evenfeed.runtime.operators import buffering
from evenfeed.runtime.operators.buffering import Overlap, ReadAhead
from evenfeed.runtime.run import Run

pytestmark = pytest.mark.timeout(60)


def _numbers(size=40):
    plan = Range(0, size)
    return build(plan, Run(plan))


@pytest.fixture(params=[0.0, 1e9], ids=["the thread reads", "the consumer reads"])
def always(request, monkeypatch):
    """Let one of them read from the third read on."""
    monkeypatch.setattr(buffering, "_TAKES", 2)
    monkeypatch.setattr(buffering, "_IDLE", request.param)
    monkeypatch.setattr(buffering, "_BUSY", request.param)
    return request.param == 0.0


def test_the_thread_reads_only_while_the_consumer_works(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(buffering, "perf_counter", lambda: now[0])
    overlap, found = Overlap(), []
    for work in (0.05, 0.15, 0.25, 0.15, 0.05):
        for _ in range(buffering._TAKES):
            now[0] += work
            overlap.begin()
            now[0] += 1.0
            overlap.end()
        found.append(overlap.pays)
    assert found == [False, False, True, True, False]


def test_who_reads_changes_neither_elements_nor_positions(always):
    del always
    found = assert_resumes(lambda: ReadAhead(_numbers(), 3), 1, 4)
    assert [row[0][2] for row in found] == list(range(40))


def test_the_consumer_reads_in_its_own_thread(always, monkeypatch):
    size = 1_000_000  # more than the thread reads before the third read
    readers, child = [], _numbers(size)
    read = type(child).read
    monkeypatch.setattr(
        type(child),
        "read",
        lambda self, most: readers.append(threading.get_ident()) or read(self, most),
    )
    operator = ReadAhead(child, 1)
    most, seen = 1, []
    while (block := operator.read(most)) is not None:
        seen += block.columns[0].tolist()
        most += 1
    operator.close()
    assert seen == list(range(size))
    assert (threading.get_ident() in readers) is not always


def test_errors_have_their_places(always):
    del always
    table = tf.constant([1.0, 2.0, 3.0])
    places = tf.data.Dataset.from_tensor_slices([0, 2, 7, 1, 9, 0, 1, 2, 8, 2] * 3)
    dataset = places.map(lambda i: table[i] * 2)

    def found(dataset):
        elements, iterator = [], iter(dataset)
        while True:
            try:
                elements.append(float(next(iterator)))
            except StopIteration:
                return elements
            except tf.errors.OpError:
                elements.append("error")

    assert found(dataset.prefetch(2)) == found(dataset)


def test_ctrl_c_in_a_read_of_the_consumer_loses_nothing(monkeypatch):
    monkeypatch.setattr(buffering, "_TAKES", 1)
    monkeypatch.setattr(buffering, "_IDLE", 1e9)
    monkeypatch.setattr(buffering, "_BUSY", 1e9)
    dataset = tf.data.Dataset.range(2_000_000).batch(1000).prefetch(2)
    whole = list(range(0, 2_000_000, 1000))
    pressed, read = [], buffering.Stretch.read

    def interrupted(self, call, most):
        here = threading.current_thread() is threading.main_thread()
        if here and len(pressed) < 3:
            pressed.append(most)
            call(most)
            raise KeyboardInterrupt
        return read(self, call, most)

    monkeypatch.setattr(buffering.Stretch, "read", interrupted)
    found, iterator = [], iter(dataset)
    while len(found) < len(whole):
        try:
            found.append(int(next(iterator)[0]))
        except KeyboardInterrupt:
            continue
    assert pressed
    assert found == whole
    assert next(iterator, None) is None
