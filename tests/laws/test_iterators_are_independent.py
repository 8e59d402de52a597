"""Two iterators over one dataset do not affect each other."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.plans import (
    KINDS,
    PLANS,
    assert_all_equal,
    events,
    expected,
    is_read_by_one,
    not_addressed,
    ways,
)

from evenfeed.runtime.elements import ElementIterator

MANY = 30


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), way=ways, turns=st.lists(st.booleans(), max_size=MANY))
def test_two_iterators_do_not_know_of_each_other(kind, data, way, turns):
    plan = data.draw(PLANS[kind])
    assume(not is_read_by_one(plan))
    with not_addressed(way):
        pair = ElementIterator(plan), ElementIterator(plan)
        found = [], []
        for turn in turns:
            found[turn].extend(events(pair[turn], 1))
        for iterator, mine in zip(pair, found, strict=True):
            rest = events(iterator, MANY - len(mine))
            assert_all_equal(mine + rest, expected(plan, iterator, MANY))
