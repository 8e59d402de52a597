"""Stop after any element, save the state as JSON, resume elsewhere: the rest is the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import (
    KINDS,
    PLANS,
    assert_all_equal,
    events,
    fresh,
    not_addressed,
    read_with_states,
    through_json,
    ways,
)
from tests.plans.checking import assert_resumes

from evenfeed.runtime.elements import ElementIterator

MANY = 14


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), way=ways)
def test_the_rest_is_the_same_wherever_one_stops_and_the_state_is_small(kind, data, way):
    with not_addressed(way):
        assert_resumes(data.draw(PLANS[kind]), MANY)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), way=ways)
def test_a_state_can_be_taken_up_by_an_iterator_that_has_read_and_again(kind, data, way):
    plan = data.draw(PLANS[kind])
    with not_addressed(way):
        found, states = read_with_states(ElementIterator(plan), MANY)
        iterator = ElementIterator(fresh(plan))
        for _ in range(4):
            events(iterator, data.draw(st.integers(0, 5)))
            k = data.draw(st.integers(0, len(states) - 1))
            iterator.set_state(states[k])
            more = data.draw(st.integers(0, 5))
            assert_all_equal(events(iterator, min(more, len(found) - k)), found[k : k + more])
            again = through_json(iterator.get_state())
            iterator = ElementIterator(fresh(plan))
            iterator.set_state(again)
            assert_all_equal(events(iterator, len(found[k + more :])), found[k + more :])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), way=ways)
def test_asking_for_the_state_changes_nothing(kind, data, way):
    plan = data.draw(PLANS[kind])
    with not_addressed(way):
        found, _ = read_with_states(ElementIterator(fresh(plan)), MANY)
        assert_all_equal(events(ElementIterator(fresh(plan)), MANY), found)
