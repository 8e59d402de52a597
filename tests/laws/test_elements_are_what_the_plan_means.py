"""Elements equal those of a plain Python reference, whether read by position or sequentially."""

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
    events,
    not_addressed,
    plans,
    ways,
)
from tests.plans.checking import assert_elements

from evenfeed.plan.elementwise import Filter, Map
from evenfeed.plan.flattening import FlatMap
from evenfeed.runtime.elements import ElementIterator

MANY = 40


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(data=st.data(), way=ways)
def test_elements_are_what_the_plan_means(kind, data, way):
    with not_addressed(way):
        assert_elements(data.draw(PLANS[kind]), MANY)


def test_there_are_plans_of_every_node():
    missing = {kind.__name__ for kind in all_nodes() - set(KINDS)}
    assert missing == NOT_YET, "give each a meaning in tests/plans/meaning_of_plain_nodes.py"


def test_random_plans_have_all_kinds_of_functions_and_errors():
    seen = Counter()

    @settings(max_examples=400, database=None, derandomize=True)
    @given(plans(most=6))
    def look(plan):
        nodes = list(plan.walk())
        seen.update({node.function.way for node in nodes if isinstance(node, Map)})
        seen.update({f"filter {n.predicate.way}" for n in nodes if isinstance(n, Filter)})
        seen["nested flat_map"] += any(map(is_nested, nodes))
        seen["failed"] += any_failed(events(ElementIterator(plan), MANY))

    look()
    ways = ("vectorised", "per element", "filter vectorised", "filter per element")
    assert all(seen[way] > 1 for way in (*ways, "nested flat_map")), seen
    assert seen["failed"] > 40


def is_nested(node):
    """Return True if a flat_map reads what another one flattened."""
    below = [part for child in node.children for part in child.walk()]
    return isinstance(node, FlatMap) and any(isinstance(part, FlatMap) for part in below)
