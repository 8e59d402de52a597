import numpy as np
import pytest
from tests.resuming import assert_resumes
from tests.unknown import Watched, count

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.plan.elementwise import Filter
from evenfeed.plan.sources import Range
from evenfeed.runtime import read_size
from evenfeed.runtime.build import build
from evenfeed.runtime.functions.row_function import trace
from evenfeed.runtime.operators.buffering import ReadAhead
from evenfeed.runtime.operators.elementwise import MapRows
from evenfeed.runtime.operators.filtering import KeepSome
from evenfeed.runtime.read_size import ReadWide, Stretch, widened
from evenfeed.runtime.run import Run

INT = tf.TensorSpec([], tf.int64)


class Clock:
    """Simulates how long reads take, so that a busy machine has no effect."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(read_size, "perf_counter", made)
    return made


def lengths(stretch, reads, width=1, clock=None, took=lambda count: 0.0):
    def read(count):
        if clock is not None:
            clock.now += took(count)
        return Block((np.zeros((count, width)),), count)

    return [stretch.read(read, 1).length for _ in range(reads)]


def test_stretches_grow_up_to_a_megabyte_or_four_rows_of_up_to_four():
    assert lengths(Stretch(), 6) == [1, 2, 4, 8, 16, 32]
    assert max(lengths(Stretch(), 30)) == 1 << 17
    assert max(lengths(Stretch(), 30, width=1 << 16)) == 4
    assert max(lengths(Stretch(), 30, width=1 << 18)) == 2
    assert max(lengths(Stretch(), 5, width=1 << 19)) == 1


def test_a_stretch_is_a_multiple_of_what_is_asked_for():
    stretch = Stretch()

    def read(count):
        return Block((np.zeros((count, 17)),), count)

    asked = [stretch.read(read, 1000).length for _ in range(6)]
    assert asked == [1000, 2000, 4000, 7000, 7000, 7000]  # a megabyte holds 7,710 rows


def test_stretches_that_take_long_become_shorter(clock):
    stretch = Stretch()
    stretch.rows = 8
    read = lengths(stretch, 10, clock=clock, took=lambda count: 0.0008 * count)
    assert read == [8, 4, 2, 4, 2, 2, 2, 2, 2, 4]  # a trial of twice as many does not pay


def test_stretches_that_take_as_long_for_more_elements_grow(clock):
    stretch = Stretch()
    stretch.rows = 8
    assert lengths(stretch, 4, clock=clock, took=lambda count: 0.0015) == [8, 16, 32, 64]


@pytest.mark.parametrize(
    ("slow", "expected"),
    [({4}, [1, 2, 4, 8, 8, 8, 8]), ({4, 5}, [1, 2, 4, 8, 8, 8, 4])],
)
def test_only_a_second_stretch_that_takes_long_shortens_those_that_did_well(clock, slow, expected):
    reads = iter(range(7))

    def took(count):
        return 0.005 if next(reads) in slow else 0.00018 * count

    assert lengths(Stretch(), 7, width=1 << 14, clock=clock, took=took) == expected


def test_elements_that_take_long_are_read_alone_but_for_a_few_trials(clock):
    def slow(count):
        return 0.005 * count

    read = lengths(Stretch(), 1000, clock=clock, took=slow)
    assert read[:3] == [1, 2, 1]
    trials = [place for place, count in enumerate(read) if count == 2]
    assert trials[:5] == [1, 7, 21, 51, 113]
    assert len(trials) < 10


def test_a_trial_that_a_busy_machine_spoilt_is_made_again(clock):
    reads = iter(range(1000))

    def slow_at_first(count):
        return 0.004 * count if next(reads) < 8 else 0.004

    assert max(lengths(Stretch(), 60, clock=clock, took=slow_at_first)) > 1000


def test_an_element_that_takes_very_long_is_read_alone(clock):
    assert set(lengths(Stretch(), 6, clock=clock, took=lambda count: 0.1 * count)) == {1}


def test_elements_that_take_very_long_are_read_alone_but_for_a_few_trials(clock):
    read = lengths(Stretch(), 500, clock=clock, took=lambda count: 0.1 * count)
    assert set(read) == {1, 2}
    assert read[:16] == [1] * 16
    assert read.count(2) < 8
    assert set(lengths(Stretch(), 500, clock=clock, took=lambda count: 0.6 * count)) == {1}


def test_a_plan_that_takes_as_long_for_one_element_as_for_many_reads_many(clock):
    read = lengths(Stretch(), 60, clock=clock, took=lambda count: 0.1 + 1e-6 * count)
    assert max(read) > 10_000


def test_a_compiled_function_is_called_with_as_many_as_it_takes_at_a_time(clock):
    def compiled_for_64(count):
        return 0.003 * -(-count // 64)

    read = lengths(Stretch(), 12, clock=clock, took=compiled_for_64)
    assert read == [1, 2, 4, 8, 16, 32, 64, 128, 64, 32, 64, 64]


def test_what_is_compiled_at_the_first_element_is_not_taken_for_slow(clock):
    once = [0.2]
    read = lengths(Stretch(), 6, clock=clock, took=lambda _: once.pop() if once else 0.0001)
    assert read == [1, 1, 2, 4, 8, 16]


def test_more_is_read_where_more_is_asked_for():
    stretch = Stretch()
    assert stretch.read(count(100).read, 30).length == 30
    assert stretch.rows == 60


def test_behind_an_error_stretches_begin_anew():
    def fail(_):
        raise ValueError("wrong")

    stretch = Stretch()
    stretch.rows = 64
    with pytest.raises(ValueError, match="wrong"):
        stretch.read(fail, 1)
    assert stretch.rows == 1


@pytest.mark.parametrize("size", [0, 1, 2, 20])
def test_reading_wide_changes_nothing(size):
    assert len(assert_resumes(lambda: ReadWide(count(size)), 1, 3, 50)) == size


def test_errors_come_in_their_place():
    whole = assert_resumes(lambda: ReadWide(Watched(1, ValueError(), 2, KeyError(), 3)))
    assert [row if isinstance(row, type) else row[0][2] for row in whole] == [
        1,
        ValueError,
        2,
        KeyError,
        3,
    ]


def test_the_first_read_is_as_long_as_asked_for():
    watched = Watched(*range(9))
    ReadWide(watched).read(3)
    assert watched.asked == [3]


def test_only_what_nobody_sees_is_read_wide():
    pure = trace(lambda x: x > 0, INT, None)
    slow = trace(lambda x: bool(x > 0), INT, None)
    assert type(widened(KeepSome(count(5), pure), count(5), pure)) is ReadWide
    assert type(widened(KeepSome(count(5), slow), count(5), slow)) is KeepSome
    assert type(widened(MapRows(Watched(1), pure), Watched(1), pure)) is MapRows


def test_a_filter_over_rows_is_called_seldom():
    asked = []
    predicate = trace(lambda x: x % 2 == 0, INT, None)
    rows = predicate.rows
    predicate.rows = lambda block, first=0: asked.append(block.length) or rows(block, first)
    plan = Filter(Range(0, 100_000), predicate)
    operator = build(plan, Run(plan))
    found = [operator.read(10) for _ in range(1000)]
    assert np.concatenate([b.columns[0] for b in found])[:6000].tolist() == list(range(0, 12000, 2))
    assert len(asked) < 20


def test_a_generator_is_not_pulled_further_for_a_map_and_a_filter():
    pulled = []

    def numbers():
        for number in range(1000):
            pulled.append(number)
            yield number

    dataset = tf.data.Dataset.from_generator(numbers, output_signature=INT)
    dataset = dataset.map(lambda x: x * 2).filter(lambda x: x >= 0).batch(4)
    iterator = iter(dataset)
    for _ in range(3):
        next(iterator)
    assert len(pulled) == 3 * 4


def test_a_prefetch_over_rows_hands_over_many_at_a_time():
    asked = []
    walk = count(1 << 20)
    read = walk.read
    walk.read = lambda most: asked.append(most) or read(most)
    operator = ReadAhead(walk, 2)
    assert [operator.read(1).columns[0].item() for _ in range(5000)] == list(range(5000))
    operator.close()
    assert len(asked) < 100
