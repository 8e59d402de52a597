"""Every element has the structure, dtypes and shapes of the plan's spec."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import KINDS, PLANS, events, not_addressed, ways
from tests.plans.checking import assert_spec

from evenfeed.runtime.elements import ElementIterator

MANY = 30


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), way=ways)
def test_the_spec_is_what_comes_out(kind, data, way):
    plan = data.draw(PLANS[kind])
    with not_addressed(way):
        iterator = ElementIterator(plan)
        found = events(iterator, MANY)
    assert iterator.element_spec == plan.element_spec
    assert_spec(plan, found)
