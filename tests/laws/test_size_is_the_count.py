"""`size` is the number of elements."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.plans import KINDS, PLANS, any_failed, events, not_addressed, ways
from tests.plans.checking import assert_size, tells_size

from evenfeed.core.specs import UNKNOWN
from evenfeed.plan.batching import Rebatch
from evenfeed.plan.checking import IgnoreErrors, Unique
from evenfeed.plan.choosing import Choose, Sample
from evenfeed.plan.elementwise import Filter, TakeWhile
from evenfeed.plan.flattening import FlatMap, GroupByWindow, Interleave
from evenfeed.plan.packing import Pack
from evenfeed.plan.sources import FromGenerator
from evenfeed.runtime.elements import ElementIterator

MANY = 100

# Their size depends on the data they read, as in TensorFlow.
NOT_KNOWN = {
    *(Choose, Filter, FlatMap, FromGenerator, GroupByWindow),
    *(IgnoreErrors, Interleave, Pack, Rebatch, Sample, TakeWhile, Unique),
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in NOT_KNOWN])
@settings(max_examples=10, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data(), way=ways)
def test_the_size_is_the_count_of_elements(kind, data, way):
    plan = data.draw(PLANS[kind])
    assume(tells_size(plan))
    with not_addressed(way):
        found = events(ElementIterator(plan), MANY)
    assume(not any_failed(found))
    assert_size(plan, found, MANY)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in NOT_KNOWN])
@settings(max_examples=10)
@given(data=st.data())
def test_what_is_not_known_before_it_is_read_is_said_to_be_unknown(kind, data):
    assert data.draw(PLANS[kind]).size == UNKNOWN
