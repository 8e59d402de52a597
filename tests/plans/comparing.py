"""Elements that came, elements that must come, and whether they are the same."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from tests.plans.meaning import FAILED, meaning, top

from evenfeed.core.errors import EvenfeedError
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.dataset import Dataset
from evenfeed.plan.node import Node
from evenfeed.runtime.elements import ElementIterator


def events(iterator: Iterator[Any], many: int) -> list[Any]:
    """Return up to `many` elements, FAILED for each that raised."""
    found: list[Any] = []
    while len(found) < many:
        try:
            found.append(next(iterator))
        except StopIteration:
            break
        except (ValueError, EvenfeedError):
            found.append(FAILED)
    return found


def expected(plan: Node, iterator: ElementIterator, many: int) -> list[Any]:
    """Return what an iterator over `plan` must give: its seeds are the only thing taken from it."""
    seeds, _ = iterator.get_state()["run"]
    parts = islice(meaning(plan, top(plan, seeds)), many)
    return [part if part is FAILED else packed(plan, part) for part in parts]


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state))


def read_with_states(iterator: ElementIterator, many: int) -> tuple[list[Any], list[Any]]:
    """Return the first elements, and the state before each and after the last."""
    found, states = [], [through_json(iterator.get_state())]
    while len(found) < many and (more := events(iterator, 1)):
        found += more
        states.append(through_json(iterator.get_state()))
    return found, states


def packed(node: Node, parts: list[Any]) -> Any:
    return pack(node.element_spec, parts, DATA)


def assert_equal(one: Any, two: Any) -> None:
    """Raise unless two elements have one structure and equal parts of equal shape and dtype."""
    assert (one is FAILED) == (two is FAILED)
    if one is FAILED:
        return
    first, second = flatten(one, DATA), flatten(two, DATA)
    assert type(one) is type(two) or not isinstance(one, (tuple, dict))
    assert len(first) == len(second)
    for mine, theirs in zip(first, second, strict=True):
        _assert_equal_parts(mine, theirs)


def _assert_equal_parts(mine: Any, theirs: Any) -> None:
    assert (mine is None) == (theirs is None)
    if isinstance(mine, Dataset):
        assert_all_equal(list(mine), list(theirs))
    elif mine is not None:
        assert isinstance(mine, np.ndarray)
        np.testing.assert_array_equal(mine, np.asarray(theirs), strict=True)


def assert_all_equal(one: list[Any], two: list[Any]) -> None:
    """Raise unless two lists of elements are equal."""
    assert len(one) == len(two), f"{one} and {two}"
    for mine, theirs in zip(one, two, strict=True):
        assert_equal(mine, theirs)
