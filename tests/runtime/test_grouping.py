# pyright: basic, reportOptionalSubscript=false, reportOptionalMemberAccess=false, reportAttributeAccessIssue=false

import numpy as np
import pytest
from tests.unknown import Watched, count, read_all, slices

from evenfeed.core.block import Block
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Skip
from evenfeed.plan.sources import Range, TensorSlice
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.operators.grouping import StackBatches
from evenfeed.runtime.positions.indexing import indexed
from evenfeed.runtime.run import Run


def stacked(child, size, *, drop=False):
    # What Watched reads has a second part, which is None.
    plan = TensorSlice((0, 0), [np.zeros(0), None]) if type(child) is Watched else Range(0, 0)
    return StackBatches(child, Batch(plan, size, drop_remainder=drop))


def read_values(operator, most):
    return read_all(operator, most)[:-1]


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
    assert read_values(stacked(count(size), 2, drop=drop), 2) == expected


@pytest.mark.parametrize("drop", [False, True])
def test_the_end_stays_the_end(drop):
    batches = stacked(count(3), 2, drop=drop)
    read_values(batches, 1)
    assert batches.read(1) is None


def test_small_blocks_are_joined_into_batches():
    batches = stacked(Watched(*range(5)), 2, drop=False)
    assert read_values(batches, 1) == [[[0, 1]], [[2, 3]], [[4]]]


def test_a_part_that_is_none_stays_none():
    block = stacked(Watched(0, 1), 2, drop=False).read(1)
    assert block.columns[1] is None
    assert block.length == 1


def test_a_batch_of_whole_rows_is_a_view_of_them():
    rows = np.arange(12).reshape(6, 2)
    block = stacked(slices(rows), 3, drop=True).read(2)
    assert block.columns[0].shape == (2, 3, 2)
    assert np.shares_memory(block.columns[0], rows)


def test_no_more_is_read_than_the_batches_asked_for_need():
    drops = Watched(*range(10))
    stacked(drops, 3, drop=False).read(2)
    assert drops.next == 6


class Shapes(Watched):
    """Returns Blocks whose rows have these lengths."""

    def read(self, most):
        block = super().read(most)
        length = 0 if block is None else int(block.columns[0][0])
        return None if block is None else Block((np.full((1, length), length),), 1)


def test_batches_of_several_shapes_come_one_by_one():
    batches = stacked(Shapes(2, 2, 1, 1, 2), 2)
    assert read_values(batches, 3) == [[[[2, 2], [2, 2]]], [[[1], [1]]], [[[2, 2]]]]


def test_what_is_dropped_may_have_any_shapes():
    assert read_values(stacked(Shapes(2, 2, 2, 1), 3, drop=True), 9) == [[[[2, 2], [2, 2], [2, 2]]]]


def test_one_batch_of_several_shapes_is_an_error_that_names_the_batch():
    node = Batch(Range(0, 0), 2)
    batches = StackBatches(Shapes(2, 2, 3, 1), node)
    assert batches.read(2).columns[0].tolist() == [[[2, 2], [2, 2]]]
    with pytest.raises(InvalidArgumentError) as caught:
        batches.read(2)
    assert caught.value.message == (
        "All elements of a batch must have the same shape, but got (3,) and (1,)."
    )
    assert caught.value.origin == node.origin


def test_elements_of_several_shapes_in_one_block_are_batched_too():
    rows = [np.zeros(1), np.ones(1), np.zeros(2), np.ones(2)]
    block = Block((rows,), 4)

    class Once(Watched):
        def read(self, most):
            return None if super().read(most) is None else block

    batches = stacked(Once(0), 2)
    assert read_values(batches, 5) == [[[[0.0], [1.0]]], [[[0.0, 0.0], [1.0, 1.0]]]]


def test_full_batches_before_an_error_are_delivered_and_what_it_fell_into_is_lost():
    child = Watched(0, 1, 2, ValueError("here"), 4, 5, 6)
    assert read_values(stacked(child, 2), 9) == [[[0, 1]], ValueError, [[4, 5]], [[6]]]


@pytest.mark.parametrize("done", [0, 1, 2, 3])
def test_an_error_comes_again_where_it_was_not_yet_raised(done):
    script = (0, 1, 2, 3, 4, ValueError("here"), 6, 7)
    expected = [[[0, 1]], [[2, 3]], ValueError, [[6, 7]], None]
    batches = stacked(Watched(*script), 2)
    assert read_all(batches, 1, done) == expected[:done]
    again = stacked(Watched(*script), 2)
    again.restore(batches.state())
    assert read_all(again, 1) == expected[done:]


@pytest.mark.parametrize("done", range(6))
def test_a_position_counts_batches_not_blocks(done):
    batches = stacked(Shapes(2, 2, 1, 1, 2, 2, 3, 3, 3), 2)
    whole = read_all(stacked(Shapes(2, 2, 1, 1, 2, 2, 3, 3, 3), 2), 9)
    read_all(batches, 9, done)
    again = stacked(Shapes(2, 2, 1, 1, 2, 2, 3, 3, 3), 2)
    again.restore(batches.state())
    assert read_all(again, 9) == whole[done:]


def rows_of(size, batch, *, drop=False):
    plan = Batch(Range(0, size), batch, drop_remainder=drop)
    return indexed(plan, Run(plan))[0]


@pytest.mark.parametrize(
    ("size", "drop"), [(10, False), (10, True), (9, False), (2, False), (0, False)]
)
def test_batches_with_positions_are_those_of_the_operator(size, drop):
    rows = rows_of(size, 3, drop=drop)
    expected = [
        batch for block in read_values(stacked(count(size), 3, drop=drop), 2) for batch in block
    ]
    assert rows.size == len(expected)
    assert [rows.run(at, 1).columns[0][0].tolist() for at in range(rows.size)] == expected
    assert [
        rows.fetch(np.array([at])).columns[0][0].tolist() for at in range(rows.size)
    ] == expected


def test_a_short_batch_is_a_block_of_its_own():
    rows = rows_of(10, 3)
    assert rows.run(1, 3).columns[0].tolist() == [[3, 4, 5], [6, 7, 8]]
    assert rows.run(3, 1).columns[0].tolist() == [[9]]
    assert rows.fetch(np.array([2, 3, 0])).columns[0].tolist() == [[6, 7, 8]]
    assert rows.fetch(np.array([3, 0])).columns[0].tolist() == [[9]]


def test_skipped_batches_are_not_read():
    plan = Skip(Batch(Range(0, 10**15), 10), 10**14 - 2)
    assert [x.tolist() for x in ElementIterator(plan)][-1][-1] == 10**15 - 1
