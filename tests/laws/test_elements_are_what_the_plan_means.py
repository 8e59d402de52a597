"""The elements are those of plain Python, addressed or read one after another."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import (
    KINDS,
    NOT_YET,
    PLANS,
    all_nodes,
    any_failed,
    assert_all_equal,
    events,
    expected,
    not_addressed,
    plans,
    ways,
)

from evenfeed.runtime.elements import ElementIterator

MANY = 40


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30)
@given(data=st.data(), way=ways)
def test_elements_are_what_the_plan_means(kind, data, way):
    plan = data.draw(PLANS[kind])
    with not_addressed(way):
        iterator = ElementIterator(plan)
        assert_all_equal(events(iterator, MANY), expected(plan, iterator, MANY))


def test_random_plans_have_every_node_and_errors():
    seen, failed = Counter(), 0

    @settings(max_examples=200, database=None, derandomize=True)
    @given(plans())
    def look(plan):
        nonlocal failed
        seen.update({type(node) for node in plan.walk()})
        failed += any_failed(events(ElementIterator(plan), MANY))

    look()
    missing = {kind.__name__ for kind in all_nodes() if seen[kind] < 4}
    assert missing - NOT_YET == set(), "give each a line in STEPS of tests/plans.py"
    assert not {kind.__name__ for kind in seen} & NOT_YET, "take it out of NOT_YET"
    assert failed > 10
