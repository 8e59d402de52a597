from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.failing import ERROR, failing, outcome
from tests.resuming import plain
from tests.unknown import Watched, count, slices

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import INFINITE
from evenfeed.dataset import plan_of
from evenfeed.plan.combining import Zip
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range
from evenfeed.plan.windows import DatasetSpec, Window
from evenfeed.runtime.build import build
from evenfeed.runtime.operators.windows import CutWindows
from evenfeed.runtime.run import Run


def node_of(child, length, shift, stride=1, *, drop=False):
    return Window(child, length, shift, stride, drop_remainder=drop, face=lambda plan: plan)


def windows_of(operator, most=2):
    found = []
    while (block := operator.read(most)) is not None:
        assert 1 <= block.length <= most
        found += [
            [list(map(plain, held.columns[0])) for held in block.row(i)]
            for i in range(block.length)
        ]
    return [[[value[2] for value in part] for part in window] for window in found]


def meaning(size, length, shift, stride, drop):
    starts = range(0, size, shift)
    found = [list(range(start, size, stride))[:length] for start in starts]
    return [[window] for window in found if len(window) == length or not drop]


small = st.integers(1, 4)


@given(st.integers(0, 8), small, small, small, st.booleans())
def test_windows_mean_what_slices_mean_and_resume(size, length, shift, stride, drop):
    node = node_of(Range(0, size), length, shift, stride, drop=drop)
    expected = meaning(size, length, shift, stride, drop)
    assert windows_of(CutWindows(count(size), node)) == expected
    assert node.size == len(expected)
    pair = Zip((0, 0), (Range(0, size), Range(0, size)))  # as Watched gives two parts

    def make():
        return CutWindows(Watched(*range(size)), node_of(pair, length, shift, stride, drop=drop))

    operator = make()
    for passed in range(len(expected) + 1):
        fresh = make()
        fresh.restore(operator.state())
        assert _first_parts(fresh) == expected[passed:]
        operator.read(1)


def _first_parts(operator):
    found = []
    while (block := operator.read(2)) is not None:
        found += [
            [held.columns[0].tolist() for held in block.row(i)[:1]] for i in range(block.length)
        ]
    return found


def test_each_part_of_an_element_has_a_window_of_its_own():
    child = Zip({"a": 0, "b": 0}, (Range(0, 3), Range(0, 3)))
    node = node_of(child, 2, 2)
    assert set(node.element_spec) == {"a", "b"}
    operator = CutWindows(slices(np.arange(3), np.arange(10, 13)), node)
    assert windows_of(operator) == [[[0, 1], [10, 11]], [[2], [12]]]


def test_no_more_is_read_than_the_windows_asked_for_span():
    drops = Watched(*range(20))
    operator = CutWindows(drops, node_of(Zip((0, 0), (Range(0, 20),) * 2), 3, 2))
    operator.read(2)
    assert drops.next == 5


@pytest.mark.parametrize("bad", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1)])
def test_numbers_below_one_are_refused(bad):
    with pytest.raises(InvalidArgumentError, match="of a window must be at least 1"):
        node_of(Range(0, 3), *bad)


def test_windows_without_end():
    assert node_of(Repeat(Range(0, 3), -1), 2, 1).size == INFINITE


def test_the_spec_of_a_dataset_says_what_its_elements_are():
    spec = DatasetSpec(tf.TensorSpec([2], tf.int32))
    wider = DatasetSpec(tf.TensorSpec([None], tf.int32))
    assert repr(spec) == (
        "DatasetSpec(TensorSpec(shape=(2,), dtype=tf.int32, name=None), TensorShape([]))"
    )
    assert spec.is_subtype_of(wider)
    assert spec.most_specific_common_supertype([wider]) == wider
    assert spec != wider
    assert spec.stand_in(1).element_spec == tf.TensorSpec([2], tf.int32)


def test_every_window_with_an_error_in_it_is_one_and_gaps_do_not_count():
    assert outcome(failing(8, 3).window(3, 1)) == [
        *([0, 1, 2], ERROR, ERROR, ERROR, [4, 5, 6], [5, 6, 7], [6, 7], [7])
    ]
    assert outcome(failing(8, 3).window(2, 2)) == [[0, 1], ERROR, [4, 5], [6, 7]]
    assert outcome(failing(9, 2).window(2, 3)) == [[0, 1], [3, 4], [6, 7]]
    assert outcome(failing(8, 3).window(2, 1, 2)) == [
        *([0, 2], ERROR, [2, 4], ERROR, [4, 6], [5, 7], [6], [7])
    ]


def test_windows_share_the_memory_of_what_was_read():
    plan = plan_of(tf.data.Dataset.range(64).window(8, 1, drop_remainder=True))
    windows = (
        build(plan, Run(plan)).read(44).columns[0][40:]
    )  # how much an iterator reads depends on time
    rows = [next(iter(window.batch(8))) for window in windows]
    assert all(np.shares_memory(one, two) for one, two in pairwise(rows))
    assert [row.tolist() for row in rows] == [list(range(at, at + 8)) for at in range(40, 44)]
