from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.plans import assert_equal, meaning, outcome, packed, plans

from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range, TensorSlice
from evenfeed.runtime import elements
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.sources import CountRange

MANY = 40


@given(plans)
def test_elements_are_what_the_plan_means(plan):
    found, failed = outcome(ElementIterator(plan), MANY)
    expected, must_fail = outcome(meaning(plan), MANY)
    assert failed == must_fail
    assert len(found) == len(expected) or failed
    for mine, theirs in zip(found, expected, strict=False):
        assert_equal(mine, packed(plan, theirs))


@given(plans)
def test_every_element_has_the_spec_of_the_plan(plan):
    iterator = ElementIterator(plan)
    assert iterator.element_spec == plan.element_spec
    specs = flatten(plan.element_spec, DATA)
    for element in outcome(iterator, MANY)[0]:
        parts = flatten(element, DATA)
        assert all(spec.is_compatible_with(part) for spec, part in zip(specs, parts, strict=True))


@given(plans, st.lists(st.booleans(), max_size=30))
def test_two_iterators_do_not_know_of_each_other(plan, turns):
    expected, failed = outcome(meaning(plan), MANY)
    assume(not failed)
    pair = ElementIterator(plan), ElementIterator(plan)
    found = [], []
    for turn in turns:
        found[turn].extend(islice(pair[turn], 1))
    for mine in found:
        for one, two in zip(mine, expected, strict=False):
            assert_equal(one, packed(plan, two))


def reads(monkeypatch, plan, count):
    """Return how many elements each read asked for while `count` came out."""
    asked = []
    read = CountRange.read
    monkeypatch.setattr(
        CountRange, "read", lambda self, most: asked.append(most) or read(self, most)
    )
    assert len(list(islice(ElementIterator(plan), count))) == count
    return asked


def test_reads_grow_from_one_element(monkeypatch):
    assert reads(monkeypatch, Range(0, 1000), 1) == [1]
    assert reads(monkeypatch, Range(0, 1000), 20) == [1, 2, 4, 8, 16]


def test_reads_grow_no_further_than_the_budget(monkeypatch):
    monkeypatch.setattr(elements, "_BLOCK_BYTES", 64)
    assert reads(monkeypatch, Range(0, 1000), 40) == [1, 2, 4, 8, 8, 8, 8, 8]


def test_an_element_larger_than_the_budget_is_read_alone(monkeypatch):
    monkeypatch.setattr(elements, "_BLOCK_BYTES", 10)
    assert reads(monkeypatch, Batch(Range(0, 1000), 4), 3) == [4, 4, 4]


def test_elements_without_bytes_are_no_trouble():
    plan = Repeat(TensorSlice(0, [np.zeros((3, 0))]), 1000)
    assert sum(1 for _ in ElementIterator(plan)) == 3000


def test_the_end_stays_the_end():
    iterator = ElementIterator(Range(0, 1))
    assert list(iterator) == [0]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)
    assert not iterator.get_next_as_optional().has_value()
