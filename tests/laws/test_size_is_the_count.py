"""`size` is the number of elements that come."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.plans import KINDS, PLANS, any_failed, events, not_addressed, ways

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.plan.batching import Rebatch
from evenfeed.plan.checking import AssertCardinality, IgnoreErrors, Unique
from evenfeed.plan.choosing import Choose, Sample
from evenfeed.plan.filtering import Filter, TakeWhile
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.generating import FromGenerator
from evenfeed.plan.windowing import GroupByWindow
from evenfeed.plan.windows import Window
from evenfeed.runtime.elements import ElementIterator

MANY = 100

# How many elements these have hangs on what they read. (So does TensorFlow's answer.)
NOT_KNOWN = {
    *(Choose, Filter, FlatMap, FromGenerator, GroupByWindow),
    *(IgnoreErrors, Interleave, Rebatch, Sample, TakeWhile, Unique),
}


def has_below(node, of_kind):
    return any(map(of_kind, node.walk()))


def is_unknown(node):
    return node.size == UNKNOWN


def is_promise(node):
    return type(node) is AssertCardinality


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in NOT_KNOWN])
@settings(max_examples=10, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=st.data(), way=ways)
def test_the_size_is_the_count_of_elements(kind, data, way):
    plan = data.draw(PLANS[kind])
    assume(plan.size != UNKNOWN)
    # Without end is also what turns out to be nothing, again and again; TensorFlow says the same.
    assume(not any(node.size == INFINITE and has_below(node, is_unknown) for node in plan.walk()))
    # A window drops what does not fill it, and the error of a promised size with it; TensorFlow's does too.
    assume(not any(type(n) is Window and has_below(n, is_promise) for n in plan.walk()))
    with not_addressed(way):
        found = events(ElementIterator(plan), MANY)
    assume(not any_failed(found))
    assert len(found) == (MANY if plan.size == INFINITE else min(plan.size, MANY))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in NOT_KNOWN])
@settings(max_examples=10)
@given(data=st.data())
def test_what_is_not_known_before_it_is_read_is_said_to_be_unknown(kind, data):
    assert data.draw(PLANS[kind]).size == UNKNOWN
