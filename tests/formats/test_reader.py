import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenfeed.core.block import Block
from evenfeed.core.errors import DataLossError
from evenfeed.formats.reader import Reader, grouped


class Counting(Reader):
    """A file of numbers that returns at most three at a time, and records its calls."""

    path = "numbers"

    def __init__(self, rows):
        self.rows = rows
        self.asked = []

    def read(self, start, count):
        self.asked.append((start, count))
        stop = min(start + count, start + 3, self.rows)
        return Block((np.arange(start, stop),), stop - start) if start < stop else None


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_rows_are_fetched_in_any_order(positions):
    found = Counting(31).fetch(np.array(positions))
    assert found.columns[0].tolist() == positions


def test_neighbours_are_read_together():
    reader = Counting(31)
    reader.fetch(np.array([5, 20, 4, 6, 21, 5]))
    assert reader.asked == [(4, 3), (20, 2)]


def test_all_rows_of_a_run_come():
    assert Counting(31).whole(2, 8).columns[0].tolist() == list(range(2, 10))


def test_a_file_that_ends_early_is_an_error():
    with pytest.raises(
        DataLossError, match="numbers ends at row 5, but should have at least 9 rows"
    ):
        Counting(5).whole(2, 7)


def test_closing_is_no_trouble():
    Counting(5).close()


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 5))
def test_each_row_is_in_one_group_or_among_the_others(lengths, fewest):
    groups, rest = grouped(np.array(lengths, np.int64), fewest, longest=4)
    expected = {
        length: [row for row, other in enumerate(lengths) if other == length]
        for length in range(1, 5)
        if lengths.count(length) >= fewest
    }
    assert {lengths[rows[0]]: rows.tolist() for rows in groups} == expected
    others = [row for row, length in enumerate(lengths) if length not in expected]
    assert rest.tolist() == others
