"""A shuffle returns every element once, and none before it can be in the buffer."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import STEPS, fresh, not_addressed

from evenfeed.dataset import Dataset
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.sources import Range
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.positions import orders

both_ways = pytest.mark.parametrize("way", [frozenset(), frozenset(STEPS)])


@both_ways
@settings(max_examples=60)
@given(
    size=st.integers(0, 90),
    buffer=st.integers(1, 100),
    seed=st.integers(0, 2**40),
    reads=st.integers(1, 5),
)
def test_every_element_comes_once_and_none_too_early(way, size, buffer, seed, reads):
    with not_addressed(way):
        order = [int(x) for x in ElementIterator(Shuffle(Range(0, size), buffer, (seed,)))]
    assert sorted(order) == list(range(size))
    assert all(place >= number - (buffer - 1) for place, number in enumerate(order))


@both_ways
def test_a_buffer_of_one_changes_nothing(way):
    with not_addressed(way):
        assert [int(x) for x in Dataset.range(50).shuffle(1)] == list(range(50))


@both_ways
@pytest.mark.parametrize(("buffer", "places"), [(3, 3), (10, 10), (-2, 10)])
def test_the_first_element_is_any_of_the_buffer_as_often(way, buffer, places):
    with not_addressed(way):
        dataset = Dataset.range(10).shuffle(buffer, seed=1)
        firsts = Counter(int(next(iter(dataset))) for _ in range(200 * places))
    assert set(firsts) == set(range(places))
    assert sum((count - 200) ** 2 / 200 for count in firsts.values()) < 32  # p < 0.001 for 9


@both_ways
def test_an_endless_dataset_is_shuffled_too(way):
    with not_addressed(way):
        dataset = Dataset.range(1000).repeat().shuffle(7, seed=2).take(3000)
        order = np.array([int(x) for x in dataset])
    assert np.bincount(order).sum() == 3000
    assert (np.abs(order - np.arange(3000) % 1000) % 1000).min() == 0


@settings(max_examples=20)
@given(
    size=st.integers(1, 3000),
    buffer=st.integers(1, 200),
    start=st.floats(0, 1, exclude_max=True),
    count=st.integers(1, 500),
)
def test_a_buffer_is_rebuilt_at_any_step(size, buffer, start, count):
    order = orders.Shuffled(orders.Forward(size), buffer, (1, 2), reshuffle=True)
    whole = order.stretch(0, size)
    first = int(start * size)
    fresh_one = orders.Shuffled(orders.Forward(size), buffer, (1, 2), reshuffle=True)
    part = fresh_one.stretch(first, min(count, size - first))
    np.testing.assert_array_equal(part, whole[first : first + count])
    np.testing.assert_array_equal(fresh_one.at(np.arange(size)[::-1]), whole[::-1])


def test_long_and_short_sorts_agree(monkeypatch):
    plan = Shuffle(Range(0, 5000), 300, (1,))
    short = [int(x) for x in ElementIterator(fresh(plan))]
    monkeypatch.setattr(orders, "_SHORT_SORT", 0)
    assert [int(x) for x in ElementIterator(fresh(plan))] == short
