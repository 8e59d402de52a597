"""What nodes say of themselves is true of random plans, and the plan alone tells what is read by position."""

from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.plans import KINDS, PLANS, STEPS, any_failed, assert_all_equal, events, fresh

from evenfeed.formats.tfrecord.records import RecordFile
from evenfeed.plan.addressing import reasons_in, why_not_addressable
from evenfeed.plan.elementwise import Enumerate
from evenfeed.plan.files import Files
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import with_children
from evenfeed.plan.ordering import Shuffle, Take
from evenfeed.plan.sources import Range
from evenfeed.runtime.build import build
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.read_size import ReadWide
from evenfeed.runtime.run import Run, next_pass

MANY = 12


def is_walked(plan):
    operator = build(plan, Run(plan, next_pass))
    (inner,) = operator.children() if isinstance(operator, ReadWide) else (operator,)
    return isinstance(inner, Walk)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(data=st.data())
def test_the_plan_knows_whether_it_is_read_by_position(kind, data):
    plan = data.draw(PLANS[kind])
    assert is_walked(plan) == (why_not_addressable(plan) is None)


def test_a_plan_is_judged_without_opening_its_files():
    missing = Files((RecordFile("missing.tfrecord"),), Range(0, 1).element_spec, as_reader=True)
    with patch.object(RecordFile, "counted", side_effect=AssertionError):
        assert why_not_addressable(missing).node is missing
        assert why_not_addressable(Shuffle(missing, 3, (1,))) is None
    assert not is_walked(Shuffle(missing, 3, (1,)))


def test_what_a_walk_reads_is_not_called_sequential():
    file = Files((RecordFile("missing.tfrecord"),), Range(0, 1).element_spec, as_reader=True)
    assert set(reasons_in(Shuffle(Batch(file, 2), 3, (1,))).values()) == {None}
    assert reasons_in(Batch(file, 2))[id(file)].node is file


def read(plan):
    found = events(ElementIterator(fresh(plan)), MANY)
    assume(not any_failed(found))
    return found


def of_kind(fact):
    """Return the nodes for which a fact holds, whatever their fields."""
    return [kind for kind in STEPS if getattr(kind.FACTS, fact)]


@pytest.mark.parametrize("kind", of_kind("same_elements"))
@settings(max_examples=8)
@given(data=st.data())
def test_elements_that_are_said_to_be_the_same_are(kind, data):
    plan = data.draw(PLANS[kind])
    assume(not any(node.facts.random for node in plan.walk()))  # a cache has seeds of its own
    assert_all_equal(read(plan), read(plan.children[0]))


@pytest.mark.parametrize("kind", of_kind("by_position"))
@settings(max_examples=8)
@given(data=st.data())
def test_what_is_chosen_by_position_does_not_depend_on_the_values(kind, data):
    plan = data.draw(PLANS[kind])
    numbered = tuple(Enumerate(child, 0) for child in plan.children)
    found = read(with_children(plan, numbered))
    assert_all_equal([element for _, element in found], read(plan))


@pytest.mark.parametrize("kind", of_kind("elementwise"))
@settings(max_examples=8)
@given(data=st.data())
def test_each_element_is_made_of_its_own_alone(kind, data):
    plan = data.draw(PLANS[kind])
    found = read(plan)
    first = with_children(plan, tuple(Take(child, 2) for child in plan.children))
    assert_all_equal(read(first), found[:2])
