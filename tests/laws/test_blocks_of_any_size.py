"""Elements do not depend on how many are read at a time."""

from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import (
    FAILED,
    KINDS,
    PLANS,
    assert_all_equal,
    events,
    fresh,
    not_addressed,
    packed,
    ways,
)

from evenfeed.core.errors import EvenfeedError
from evenfeed.runtime.build import build
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.run import Run

MANY = 30


def read_in(sizes, plan):
    """Return the elements, read in blocks of these sizes."""
    operator, found = build(plan, Run(plan)), []
    for most in cycle(sizes):
        if len(found) >= MANY:
            break
        try:
            block = operator.read(most)
        except (ValueError, EvenfeedError):
            found.append(FAILED)
            continue
        if block is None:
            assert operator.read(most) is None
            break
        assert 1 <= block.length <= most
        found += [packed(plan, block.row(row)) for row in range(block.length)]
    return found[:MANY]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), way=ways, sizes=st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_blocks_of_any_size_have_the_same_elements(kind, data, way, sizes):
    plan = data.draw(PLANS[kind])
    with not_addressed(way):
        expected = events(ElementIterator(fresh(plan)), MANY)
        assert_all_equal(read_in(sizes, fresh(plan)), expected)
