"""The laws hold for every pair of nodes, in both orders."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import STEPS, beginnings, fresh, not_addressed, numbers_up, ways
from tests.plans.checking import (
    assert_elements,
    assert_resumes,
    assert_size,
    assert_spec,
    tells_size,
)

MANY = 8


sources = st.one_of(numbers_up, beginnings)


@pytest.mark.parametrize("outer", STEPS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("inner", STEPS, ids=lambda kind: kind.__name__)
def test_the_laws_hold_for_every_pair(inner, outer):
    # @given inside the test: Hypothesis settings would remember all cases of a test, too deep for the stack.
    @settings(max_examples=2, database=None)  # the simplest plan, and any plan
    @given(STEPS[outer](STEPS[inner](sources)), ways)
    def check(plan, way):
        assert {inner, outer} <= {type(node) for node in plan.walk()}
        with not_addressed(way):
            found = assert_elements(fresh(plan), MANY)
            assert_spec(plan, found)
            if tells_size(plan):
                assert_size(plan, found, MANY)
            assert_resumes(fresh(plan), MANY, places=3)

    check()
