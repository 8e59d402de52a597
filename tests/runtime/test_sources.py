import numpy as np
import pytest

from evenfeed.core import dtypes
from evenfeed.plan.sources import Range
from evenfeed.runtime.sources import CountRange, SliceArrays


def test_a_range_is_counted_in_blocks_as_large_as_asked_for():
    count = CountRange(Range(1, 8, 2))
    blocks = [count.read(3), count.read(3), count.read(3)]
    assert [None if b is None else b.columns[0].tolist() for b in blocks] == [[1, 3, 5], [7], None]
    assert count.read(1) is None


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint8, dtypes.float32, dtypes.complex64])
def test_a_range_counts_in_its_dtype(dtype):
    column = CountRange(Range(254, 258, dtype=dtype)).read(10).columns[0]
    assert column.dtype == dtype
    np.testing.assert_array_equal(column, np.arange(254, 258).astype(dtype))


def test_a_range_reaches_the_ends_of_int64():
    assert CountRange(Range(2**63 - 3, 2**63 - 1)).read(9).columns[0].tolist() == [
        2**63 - 3,
        2**63 - 2,
    ]
    low = Range(-(2**63) + 1, -(2**63), -1)
    assert CountRange(low).read(9).columns[0].tolist() == [-(2**63) + 1]
    wide = CountRange(Range(-(2**63), 2**63 - 1, 2**62))
    assert wide.read(9).columns[0].tolist() == [-(2**63), -(2**62), 0, 2**62]


def test_arrays_are_cut_without_a_copy():
    rows, texts = np.arange(10).reshape(5, 2), np.array(list("abcde"), object)
    cut = SliceArrays([rows, None, texts], 5)
    first, second, third = cut.read(3), cut.read(3), cut.read(3)
    assert (first.length, second.length, third) == (3, 2, None)
    assert first.columns[0].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert second.columns[0].tolist() == [[6, 7], [8, 9]]
    assert second.columns[1] is None
    assert second.columns[2].tolist() == ["d", "e"]
    assert np.shares_memory(second.columns[0], rows)


def test_no_rows_are_no_block():
    assert SliceArrays([np.zeros((0, 3))], 0).read(4) is None
