import numpy as np
import pytest
from tests.unknown import count, read_all, slices

from evenfeed.core import dtypes
from evenfeed.plan.sources import Range
from evenfeed.runtime.operators.sources import Arrays, Numbers


def positions(*numbers):
    return np.array(numbers, np.int64)


def test_a_range_is_counted_in_blocks_as_large_as_asked_for():
    assert read_all(count(1, 8, 2), 3) == [[1, 3, 5], [7], None]


def test_the_numbers_of_a_range_can_be_asked_for_in_any_order():
    numbers = Numbers(Range(10, 0, -3))
    assert numbers.size == 4
    assert numbers.fetch(positions(3, 0, 0)).columns[0].tolist() == [1, 10, 10]
    assert numbers.run(1, 2).columns[0].tolist() == [7, 4]


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint8, dtypes.float32, dtypes.complex64])
def test_a_range_counts_in_its_dtype(dtype):
    column = Numbers(Range(254, 258, dtype=dtype)).run(0, 4).columns[0]
    assert column.dtype == dtype
    np.testing.assert_array_equal(column, np.arange(254, 258).astype(dtype))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Range(2**63 - 3, 2**63 - 1), [2**63 - 3, 2**63 - 2]),
        (Range(-(2**63) + 1, -(2**63), -1), [-(2**63) + 1]),
        (Range(-(2**63), 2**63 - 1, 2**62), [-(2**63), -(2**62), 0, 2**62]),
    ],
)
def test_a_range_reaches_the_ends_of_int64(node, expected):
    assert Numbers(node).run(0, node.size).columns[0].tolist() == expected


def test_arrays_are_cut_without_a_copy():
    rows, texts = np.arange(10).reshape(5, 2), np.array(list("abcde"), object)
    cut = slices(rows, None, texts)
    first, second, third = cut.read(3), cut.read(3), cut.read(3)
    assert (first.length, second.length, third) == (3, 2, None)
    assert first.columns[0].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert second.columns[0].tolist() == [[6, 7], [8, 9]]
    assert second.columns[1] is None
    assert second.columns[2].tolist() == ["d", "e"]
    assert np.shares_memory(second.columns[0], rows)


def test_rows_of_arrays_are_gathered_as_copies():
    rows = np.arange(10).reshape(5, 2)
    block = Arrays([rows, None], 5).fetch(positions(4, 0))
    assert block.columns[0].tolist() == [[8, 9], [0, 1]]
    assert block.columns[1] is None
    assert not np.shares_memory(block.columns[0], rows)


def test_no_rows_are_no_block():
    assert slices(np.zeros((0, 3))).read(4) is None


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(3, 40, 4), (40, 3, -4), (2**63 - 9, 2**63 - 1, 2), (-(2**63), 8 - 2**63, 3), (0, 200, 1)],
)
def test_a_run_of_a_range_is_what_is_fetched(start, stop, step):
    rows = Numbers(Range(start, stop, step))
    expected = list(range(start, stop, step))
    assert rows.run(0, rows.size).columns[0].tolist() == expected
    assert rows.run(1, 1).columns[0].tolist() == expected[1:2]
    assert rows.fetch(np.arange(rows.size)).columns[0].tolist() == expected
