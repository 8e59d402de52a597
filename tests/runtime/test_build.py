from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import assert_equal, meaning, outcome, packed, plans
from tests.unknown import UnknownSize

from evenfeed.plan.grouping import Batch
from evenfeed.plan.sources import Range, Tensor
from evenfeed.runtime.build import build

MANY = 40


@given(plan=plans, sizes=st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_reading_in_blocks_of_any_sizes_gives_the_same_elements(plan, sizes):
    found, failed = outcome(read_in(sizes, build(plan)), MANY)
    expected, must_fail = outcome(meaning(plan), MANY)
    assert failed <= must_fail
    assert len(found) == len(expected) or must_fail
    for mine, theirs in zip(found, expected, strict=False):
        assert_equal(packed(plan, mine), packed(plan, theirs))


def read_in(sizes, operator):
    for most in cycle(sizes):
        block = operator.read(most)
        if block is None:
            return
        assert 1 <= block.length <= most
        yield from map(block.row, range(block.length))


def test_a_tensor_is_a_block_of_one():
    array = np.arange(3)
    block = build(Tensor((0, 0), [array, None])).read(5)
    assert block.length == 1
    assert block.columns[0].shape == (1, 3)
    assert np.shares_memory(block.columns[0], array)


def test_every_build_starts_at_the_first_element():
    plan = Batch(Range(0, 4), 2)
    assert build(plan).read(1).columns[0].tolist() == [[0, 1]]
    assert build(plan).read(1).columns[0].tolist() == [[0, 1]]


def test_a_node_without_an_operator_is_named():
    with pytest.raises(TypeError, match="no operator runs UnknownSize"):
        build(UnknownSize())
