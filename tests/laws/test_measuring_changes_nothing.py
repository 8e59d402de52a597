"""A measured iterator returns what another one returns, and counts it."""

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.plans import KINDS, PLANS, any_failed, assert_all_equal, events, expected

import evenfeed as tf
from evenfeed.runtime.elements import ElementIterator

MANY = 60


def measured(plan):
    tf.experimental.enable_stats()
    try:
        return ElementIterator(plan)
    finally:
        tf.experimental.enable_stats(False)


@settings(max_examples=80, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data())
def test_a_measured_iterator_returns_and_counts_the_same_elements(data):
    plan = data.draw(PLANS[data.draw(st.sampled_from(KINDS))])
    iterator = measured(plan)
    meant = expected(plan, iterator, MANY)
    found = events(iterator, MANY)
    assert_all_equal(found, meant)
    assume(not any_failed(found) and len(found) < MANY)
    stats = iterator.stats()
    assert stats.elements == len(found)
    assert [one for one in stats.stages if one.inside is None][-1].elements >= len(found)
