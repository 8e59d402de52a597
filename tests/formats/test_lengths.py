import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenfeed.formats.reader import grouped


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
