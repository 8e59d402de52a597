import gc
import json
import threading
import time

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.callsite import Origin
from evenfeed.errors import InvalidArgumentError
from evenfeed.plan.elementwise import AUTOTUNE, Map
from evenfeed.plan.sources import Range
from evenfeed.runtime.functions.row_function import trace
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.operators.elementwise import MapRows, mapped
from evenfeed.runtime.operators.sources import Numbers
from evenfeed.runtime.operators.thread_map import MapInThreads
from evenfeed.runtime.positions.mapped_rows import MappedRows
from evenfeed.runtime.positions.orders import Forward
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.run import Run

HERE = Origin("train.py", 12)
NUMBER = tf.TensorSpec([], tf.int64)


def numbers(count):
    return Walk(Numbers(Range(0, count)), Forward(count))


def function(call, **options):
    return trace(call, NUMBER, HERE, **options)


def untraced(call, **options):
    return function(call, vectorize=False, output_signature=NUMBER, **options)


def read_all(operator, most=3):
    """Return what was read: lists of numbers, and the names of errors between them."""
    found = []
    while True:
        try:
            block = operator.read(most)
        except (ValueError, KeyError, OSError) as error:
            found.append(type(error).__name__)
            continue
        if block is None:
            return found
        found.extend(block.columns[0].tolist())


def picky(x):
    if x in (2, 5, 6):
        raise KeyError(int(x))
    return x * 10


def rows_of(call):
    return MapRows(numbers(8), function(call))


def threads_of(call):
    return MapInThreads(numbers(8), untraced(call), 3)


WAYS = pytest.mark.parametrize("make", [rows_of, threads_of])


@WAYS
def test_elements_keep_their_order(make):
    def slow_at_first(x):
        time.sleep(0.002 * (8 - int(x)))
        return x + 1

    assert read_all(make(slow_at_first)) == list(range(1, 9))


@WAYS
@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_an_error_comes_in_its_turn_and_the_rest_behind_it(make, most):
    expected = [0, 10, "KeyError", 30, 40, "KeyError", "KeyError", 70]
    assert read_all(make(picky), most) == expected


def test_an_index_out_of_range_is_passed_like_any_error():
    table = np.arange(100, 104)
    compiled = MapRows(numbers(6), function(lambda x: tf.constant(table)[x * 2 % 5]))
    assert compiled._function.way == "vectorised"
    assert read_all(compiled) == [100, 102, "InvalidArgumentError", 101, 103, 100]


@WAYS
def test_resume_is_exact_behind_every_read(make):
    whole = read_all(make(picky), 2)
    reader, states = make(picky), []
    while True:
        states.append(json.loads(json.dumps(reader.state())))
        try:
            if reader.read(2) is None:
                break
        except KeyError:
            pass
    rests = []
    for state in states:
        again = make(picky)
        again.restore(state)
        rests.append(read_all(again, 2))
    assert rests[0] == whole
    for rest in rests:
        assert rest == whole[len(whole) - len(rest) :]
    assert rests[-1] == []


@WAYS
def test_the_note_counts_elements_from_the_first(make):
    reader = make(picky)
    for _ in range(2):
        reader.read(1)
    state = reader.state()
    again = make(picky)
    again.restore(state)
    with pytest.raises(KeyError) as caught:
        again.read(1)
    assert "while mapping element 2 with picky, asked for at train.py:12" in caught.value.__notes__


class Counted(Operator):
    """Counts how many elements were read."""

    def __init__(self, count):
        self._inner = numbers(count)
        self.read_so_far = 0

    def read(self, most):
        block = self._inner.read(most)
        self.read_so_far += 0 if block is None else block.length
        return block

    def state(self):
        return self._inner.state()

    def restore(self, state):
        self._inner.restore(state)


def test_little_more_is_read_ahead_than_is_worked_on():
    source = Counted(100)
    reader = MapInThreads(source, untraced(lambda x: x), 4)
    delivered = reader.read(1).length
    assert source.read_so_far <= delivered + 4 + 1
    reader.close()


def test_rows_reads_no_more_than_is_asked_for():
    source = Counted(100)
    MapRows(source, function(lambda x: x + 1)).read(3)
    assert source.read_so_far == 3


def test_waiting_overlaps():
    together, reading = threading.Barrier(16, timeout=30), threading.Event()

    def wait(x):
        if reading.is_set():
            together.wait()  # continues only when sixteen elements are being processed
        return x

    reader = MapInThreads(numbers(64), untraced(wait), 16)
    reading.set()
    assert read_all(reader, 1) == list(range(64))


def test_threads_without_work_get_more_while_the_reader_waits_for_an_element():
    reading, further = threading.Event(), threading.Event()

    def wait(x):
        if reading.is_set() and x == 0:
            assert further.wait(30)
        elif reading.is_set() and x == 7:  # more than are read ahead at first
            further.set()
        return x

    reader = MapInThreads(numbers(32), untraced(wait), 4)
    reading.set()
    assert read_all(reader, 1) == list(range(32))


def test_a_reader_that_waits_for_long_reads_only_a_few_more():
    reading, released = threading.Event(), threading.Event()

    def wait(x):
        if reading.is_set() and x == 0:
            assert released.wait(30)
        return x

    reader = MapInThreads(numbers(1000), untraced(wait), 4)
    reading.set()
    reader.begin()
    longest = 1  # quick calls are handed out in longer runs
    for _ in range(1000):
        reader.hurry([call.result for call in reader._calls])
        longest = max(longest, reader._pace.rows)
    assert reader.at_work <= 5 * longest + 4
    released.set()
    assert read_all(reader, 1) == list(range(1000))


def slow_now_and_then(x):
    time.sleep(0.03 if x % 4 == 0 else 0)
    return picky(x)


def test_without_order_nothing_is_lost_and_the_fast_come_first():
    reading, delivered = threading.Event(), threading.Event()

    def late(x):
        if reading.is_set() and x % 4 == 0:
            assert delivered.wait(30)
        return picky(x)

    reader = MapInThreads(numbers(8), untraced(late), 3, in_order=False)
    reading.set()
    try:
        found = reader.read(1).columns[0].tolist()
    except KeyError:
        found = ["KeyError"]
    assert found[0] != 0
    delivered.set()
    found += read_all(reader, 2)
    assert sorted(map(str, found)) == sorted(map(str, read_all(rows_of(picky))))


def test_without_order_resume_loses_and_repeats_nothing():
    make = lambda: MapInThreads(numbers(20), untraced(slow_now_and_then), 4, in_order=False)  # noqa: E731
    everything = sorted(map(str, read_all(make())))
    for reads in range(8):
        reader, before = make(), []
        for _ in range(reads):
            try:
                before.extend(reader.read(1).columns[0].tolist())
            except KeyError:
                before.append("KeyError")
        state = json.loads(json.dumps(reader.state()))
        again = make()
        again.restore(state)
        assert sorted(map(str, before + read_all(again))) == everything


def map_threads():
    return [t for t in threading.enumerate() if t.name.startswith("evenfeed-map")]


@pytest.mark.parametrize("end", ["close", "forget"])
def test_threads_end_with_their_operator(end):
    others = map_threads()  # regardless of what other tests left
    reader = MapInThreads(numbers(100), untraced(lambda x: x), 4)
    reader.read(1)
    own = [thread for thread in map_threads() if thread not in others]
    assert own
    if end == "close":
        reader.close()
    del reader
    gc.collect()
    deadline = time.monotonic() + 30
    while any(thread.is_alive() for thread in own) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(thread.is_alive() for thread in own)


def test_the_way_chooses_the_operator():
    fast, slow = function(lambda x: x + 1), untraced(lambda x: x)
    node = Map(Range(0, 5), slow, num_parallel_calls=AUTOTUNE)
    run = Run(node)
    assert type(mapped(numbers(5), fast, node, run)) is MapRows
    assert type(mapped(numbers(5), slow, Map(Range(0, 5), slow), run)) is MapRows
    assert type(mapped(numbers(5), slow, node, run)) is MapInThreads


def unordered(dataset):
    options = tf.data.Options()
    options.deterministic = False
    return dataset.with_options(options)


@pytest.mark.parametrize(
    "under_options",
    [
        unordered,
        lambda mapped: unordered(mapped).prefetch(1),
        lambda mapped: unordered(mapped.prefetch(1)),
        lambda mapped: unordered(mapped.batch(1)),
    ],
)
def test_options_let_results_overtake_each_other(under_options):
    delivered = threading.Event()

    def overtaken(x):
        if x == 0:
            assert delivered.wait(30)
        return x

    numbers = tf.data.Dataset.range(4)
    mapped = numbers.map(overtaken, 2, vectorize=False, output_signature=NUMBER)
    found = []
    for x in under_options(mapped):
        found += np.ravel(x).tolist()
        delivered.set()
    assert found[0] != 0
    assert sorted(found) == [0, 1, 2, 3]


def test_a_step_that_keeps_its_order_does_so_under_any_options():
    overtaken = threading.Event()

    def late(x):
        if x == 0:
            assert overtaken.wait(30)
        overtaken.set()
        return x

    how = {"vectorize": False, "output_signature": NUMBER, "deterministic": True}
    dataset = unordered(tf.data.Dataset.range(4).map(late, 2, **how))
    assert [int(x) for x in dataset] == [0, 1, 2, 3]


@pytest.mark.parametrize("calls", [0, -2])
def test_a_count_of_calls_is_at_least_one(calls):
    with pytest.raises(InvalidArgumentError, match="num_parallel_calls must be at least 1"):
        Map(Range(0, 5), function(lambda x: x), num_parallel_calls=calls)


def test_a_map_has_the_functions_spec_and_the_childs_size():
    node = Map(Range(0, 5), function(lambda x: x / 2))
    assert (node.element_spec, node.size) == (tf.TensorSpec([], tf.float64), 5)


def test_rows_are_mapped_wherever_they_stand():
    rows = MappedRows(Numbers(Range(0, 100)), function(lambda x: x * 10))
    assert rows.fetch(np.array([7, 3, 99])).columns[0].tolist() == [70, 30, 990]
    assert rows.run(5, 2).columns[0].tolist() == [50, 60]


def test_arrays_keep_their_dtype_in_lists_that_functions_return_and_carry():
    parts = [np.uint8([1, 255]), np.uint8([3, 4])]
    spec = tf.TensorSpec([2, 2], tf.uint8)
    numbers = tf.data.Dataset.range(2)
    assert numbers.map(lambda _: {"a": parts}).element_spec == {"a": spec}
    assert numbers.scan(parts, lambda state, _: (state, state)).element_spec == spec
    assert numbers.reduce(parts, lambda state, _: state).dtype == np.uint8
    assert tf.experimental.Optional.from_value(parts).element_spec == spec
