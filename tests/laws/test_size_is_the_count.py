"""`size` is the number of elements that come."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.plans import KINDS, PLANS, any_failed, events, not_addressed, ways

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.runtime.elements import ElementIterator

MANY = 100


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data(), way=ways)
def test_the_size_is_the_count_of_elements(kind, data, way):
    plan = data.draw(PLANS[kind])
    assume(plan.size != UNKNOWN)
    with not_addressed(way):
        found = events(ElementIterator(plan), MANY)
    assume(not any_failed(found))
    assert len(found) == (MANY if plan.size == INFINITE else min(plan.size, MANY))
