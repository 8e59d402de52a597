"""Every element has the structure, the dtypes and the shapes that the plan says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import FAILED, KINDS, PLANS, events, not_addressed, ways

from evenfeed.core.structure import DATA, assert_same, flatten
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
    specs = flatten(plan.element_spec, DATA)
    for element in found:
        if element is not FAILED:
            assert_same(element, plan.element_spec, DATA)
            parts = flatten(element, DATA)
            assert all(
                spec.is_compatible_with(part) for spec, part in zip(specs, parts, strict=True)
            )
