import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.columns import blocks, plain_rows

from evenfeed.core import dtypes
from evenfeed.core.block import Block
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.pages.pages import (
    Part,
    block_of,
    is_even,
    layout_from_json,
    layout_of,
    layout_to_json,
    page_bytes,
    spacing,
)


def written(specs, block):
    layout = layout_of(block, [getattr(spec, "dtype", None) for spec in specs])
    return layout, np.frombuffer(page_bytes(block, layout), np.uint8)


@given(blocks(), st.data())
def test_any_rows_come_back_as_they_were(given_block, data):
    specs, block = given_block
    layout, raw = written(specs, block)
    assert layout_from_json(json.loads(json.dumps(layout_to_json(layout)))) == layout
    rows = data.draw(st.lists(st.integers(0, block.length - 1), min_size=1, max_size=12))
    found = block_of(raw, layout, block.length, np.array(rows))
    everything = plain_rows(block)
    assert plain_rows(found) == [everything[row] for row in rows]
    start = data.draw(st.integers(0, block.length - 1))
    found = block_of(raw, layout, block.length, slice(start, block.length))
    assert plain_rows(found) == everything[start:]


@given(blocks(), st.data())
def test_a_page_that_is_cut_is_an_error_or_what_it_was(given_block, data):
    specs, block = given_block
    layout, raw = written(specs, block)
    cut = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        found = block_of(cut, layout, block.length, slice(0, block.length))
    except ValueError:
        return
    assert plain_rows(found) == plain_rows(block)


def test_numbers_are_views_of_the_page():
    layout, raw = written([TensorSpec([], dtypes.int64)], Block((np.arange(4),), 4))
    assert np.shares_memory(block_of(raw, layout, 4, slice(1, 3)).columns[0], raw)


NUMBERS, TEXT, UNLIKE = (
    Part(dtypes.float32, (33,)),
    Part(dtypes.string, ()),
    Part(dtypes.int64, None),
)


def test_only_numbers_of_one_shape_are_even():
    assert is_even((NUMBERS, None))
    assert not is_even((NUMBERS, TEXT))
    assert not is_even((UNLIKE,))


@pytest.mark.parametrize(
    ("layout", "size", "expected"),
    [
        ((NUMBERS,), 1 << 17, 2112),  # of 64 and 132
        ((NUMBERS,), 132, 64),  # would waste most of the file
        ((TEXT,), 1 << 17, 64),
        ((Part(dtypes.float32, (0,)),), 1 << 17, 64),
    ],
)
def test_pages_begin_at_multiples_of_a_row_where_that_is_cheap(layout, size, expected):
    assert spacing(layout, size) == expected
