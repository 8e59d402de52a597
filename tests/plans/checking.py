"""The laws that hold for every plan, as functions that raise where one does not."""

import json
import sys
from typing import Any

import numpy as np
from tests.plans.comparing import assert_all_equal, events, expected, read_with_states
from tests.plans.generate import fresh, is_read_by_one
from tests.plans.meaning import FAILED, any_failed

from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.core.structure import DATA, assert_same, flatten
from evenfeed.plan.checking import AssertCardinality
from evenfeed.plan.node import Node
from evenfeed.plan.windows import Window
from evenfeed.runtime.elements import ElementIterator


def assert_elements(plan: Node, many: int) -> list[Any]:
    """Return the first elements of a plan, which must be what it means."""
    iterator = ElementIterator(plan)
    found = events(iterator, many)
    assert_all_equal(found, expected(plan, iterator, many))
    return found


def assert_spec(plan: Node, found: list[Any]) -> None:
    """Raise unless elements have the structure, the dtypes and the shapes that a plan says."""
    specs = flatten(plan.element_spec, DATA)
    for element in found:
        if element is not FAILED:
            assert_same(element, plan.element_spec, DATA)
            parts = flatten(element, DATA)
            assert all(
                spec.is_compatible_with(part) for spec, part in zip(specs, parts, strict=True)
            )


def tells_size(plan: Node) -> bool:
    """Return True if the size of a plan is known, and the number of its elements cannot be another."""
    return (
        plan.size != UNKNOWN
        # Without end is also what turns out to be nothing, again and again; TensorFlow says the same.
        and not any(node.size == INFINITE and _any(node, _is_unknown) for node in plan.walk())
        # A window drops what does not fill it, and the error of a promised size with it; TensorFlow's does too.
        and not any(type(node) is Window and _any(node, _is_promise) for node in plan.walk())
    )


def _any(node: Node, of_kind: Any) -> bool:
    return any(map(of_kind, node.walk()))


def _is_unknown(node: Node) -> bool:
    return node.size == UNKNOWN


def _is_promise(node: Node) -> bool:
    return type(node) is AssertCardinality


def assert_size(plan: Node, found: list[Any], many: int) -> None:
    """Raise unless the first `many` elements are as many as a plan says, where none failed."""
    if not any_failed(found):
        assert len(found) == (many if plan.size == INFINITE else min(plan.size, many))


def assert_resumes(
    plan: Node, many: int, *, places: int = sys.maxsize, largest: int = 3000
) -> None:
    """Raise unless a pass goes on as it would have, in this dataset and in that of another process.

    Args:
        plan: What is read.
        many: How many elements are read.
        places: How many of the positions between them are tried, from the first to the last.
        largest: How many characters a state may have.
    """
    found, states = read_with_states(ElementIterator(plan), many)
    for passed in sorted({round(n) for n in np.linspace(0, len(found), min(places, len(states)))}):
        assert len(json.dumps(states[passed])) < largest
        for dataset in [fresh(plan), *([] if is_read_by_one(plan) else [plan])]:
            iterator = ElementIterator(dataset)
            iterator.set_state(states[passed])
            assert_all_equal(events(iterator, len(found) - passed), found[passed:])
            assert len(found) == many or not events(iterator, 1)
