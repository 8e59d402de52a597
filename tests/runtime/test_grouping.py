import numpy as np
import pytest

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.grouping import Batch
from evenfeed.plan.sources import Range
from evenfeed.runtime.block import Block
from evenfeed.runtime.grouping import StackBatches
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.sources import CountRange, SliceArrays


class Drops(Operator):
    """Gives its numbers one at a time."""

    def __init__(self, size):
        self.numbers = iter(range(size))

    def read(self, most):
        number = next(self.numbers, None)
        return None if number is None else Block((np.array([number]), None), 1)


def stacked(child, size, *, drop=False):
    return StackBatches(child, Batch(Range(0, 0), size, drop_remainder=drop))


def read_all(operator, most):
    blocks = iter(lambda: operator.read(most), None)
    return [block.columns[0].tolist() for block in blocks]


@pytest.mark.parametrize(
    ("size", "drop", "expected"),
    [
        (7, False, [[[0, 1], [2, 3]], [[4, 5]], [[6]]]),
        (7, True, [[[0, 1], [2, 3]], [[4, 5]]]),
        (6, False, [[[0, 1], [2, 3]], [[4, 5]]]),
        (1, False, [[[0]]]),
        (1, True, []),
        (0, False, []),
        (4, True, [[[0, 1], [2, 3]]]),
    ],
)
def test_full_batches_come_together_and_a_short_one_alone(size, drop, expected):
    assert read_all(stacked(CountRange(Range(0, size)), 2, drop=drop), 2) == expected


@pytest.mark.parametrize("drop", [False, True])
def test_the_end_stays_the_end(drop):
    batches = stacked(CountRange(Range(0, 3)), 2, drop=drop)
    read_all(batches, 1)
    assert batches.read(1) is None


def test_small_blocks_are_joined_into_batches():
    batches = stacked(Drops(5), 2, drop=False)
    assert read_all(batches, 1) == [[[0, 1]], [[2, 3]], [[4]]]


def test_a_part_that_is_none_stays_none():
    block = stacked(Drops(2), 2, drop=False).read(1)
    assert block.columns[1] is None
    assert block.length == 1


def test_a_batch_of_whole_rows_is_a_view_of_them():
    rows = np.arange(12).reshape(6, 2)
    block = stacked(SliceArrays([rows], 6), 3, drop=True).read(2)
    assert block.columns[0].shape == (2, 3, 2)
    assert np.shares_memory(block.columns[0], rows)


def test_no_more_is_read_than_the_batches_asked_for_need():
    drops = Drops(10)
    stacked(drops, 3, drop=False).read(2)
    assert next(drops.numbers) == 6


class Shapes(Operator):
    """Gives blocks whose rows have these lengths."""

    def __init__(self, *lengths):
        self.lengths = list(lengths)

    def read(self, most):
        if not self.lengths:
            return None
        length = self.lengths.pop(0)
        return Block((np.full((1, length), length),), 1)


def test_batches_of_several_shapes_come_one_by_one():
    batches = stacked(Shapes(2, 2, 1, 1, 2), 2)
    assert read_all(batches, 3) == [[[[2, 2], [2, 2]]], [[[1], [1]]], [[[2, 2]]]]


def test_what_is_dropped_may_have_any_shapes():
    assert read_all(stacked(Shapes(2, 2, 2, 1), 3, drop=True), 9) == [[[[2, 2], [2, 2], [2, 2]]]]


def test_one_batch_of_several_shapes_is_an_error_that_names_the_batch():
    node = Batch(Range(0, 0), 2)
    batches = StackBatches(Shapes(2, 2, 3, 1), node)
    assert batches.read(2).columns[0].tolist() == [[[2, 2], [2, 2]]]
    with pytest.raises(InvalidArgumentError) as caught:
        batches.read(2)
    assert caught.value.message == (
        "A batch holds elements of one shape, but it would hold (3,) and (1,)."
    )
    assert caught.value.origin == node.origin
