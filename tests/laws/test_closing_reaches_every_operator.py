"""An operator lists what it reads from, so that closing a pass reaches all threads and files below it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import KINDS, PLANS, fresh, not_addressed, ways

from evenfeed.runtime.build import build
from evenfeed.runtime.operator import Operator, PushbackReader
from evenfeed.runtime.run import Run


def held_by(operator):
    """Return the operators in the attributes of an operator."""
    parts = vars(operator).values()
    readers = [part.child for part in parts if isinstance(part, PushbackReader)]
    several = [each for part in parts if isinstance(part, (list, tuple)) for each in part]
    return [part for part in [*parts, *readers, *several] if isinstance(part, Operator)]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5)
@given(data=st.data(), way=ways)
def test_an_operator_lists_what_it_holds(kind, data, way):
    with not_addressed(way):
        plan = fresh(data.draw(PLANS[kind]))
        run = Run(plan)
        top = build(plan, run)
    found = [top]
    for operator in found:
        children = operator.children()
        assert {id(held) for held in held_by(operator)} <= set(map(id, children)), operator
        found.extend(children)
    top.close()
    run.close()
