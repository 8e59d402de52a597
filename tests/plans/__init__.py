"""Random plans, and what they mean in plain Python.

A new node needs one function marked `@means` in `meaning_of_plain_nodes.py`: how to make a plan with it at the top,
and its elements, one at a time, without any Block. All laws then hold for it, or fail.
"""

from typing import Final

from tests.plans import meaning_of_functions, meaning_of_packing, meaning_of_plain_nodes
from tests.plans.comparing import (
    assert_all_equal,
    assert_equal,
    events,
    expected,
    packed,
    read_with_states,
    through_json,
)
from tests.plans.generate import (
    KINDS,
    PLANS,
    all_nodes,
    fresh,
    is_read_by_one,
    not_addressed,
    plans,
    ways,
)
from tests.plans.meaning import FAILED, STEPS, any_failed
from tests.plans.sources import SOURCES, beginnings, elements, numbers_up

__all__ = [
    "FAILED",
    "KINDS",
    "NOT_YET",
    "PLANS",
    "SOURCES",
    "STEPS",
    "all_nodes",
    "any_failed",
    "assert_all_equal",
    "assert_equal",
    "beginnings",
    "elements",
    "events",
    "expected",
    "fresh",
    "is_read_by_one",
    "meaning_of_functions",
    "meaning_of_packing",
    "meaning_of_plain_nodes",
    "not_addressed",
    "numbers_up",
    "packed",
    "plans",
    "read_with_states",
    "through_json",
    "ways",
]

# The nodes that no random plan has: a HintedShard cannot be read, and OwnBatches needs OwnRows below
# it (tests/feeding/test_reading.py has examples of both, and a resume). A new node gets a meaning.
NOT_YET: Final = {"HintedShard", "OwnBatches"}
