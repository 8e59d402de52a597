import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenfeed.core.errors import OutOfRangeError, ResourceExhaustedError
from evenfeed.core.specs import INFINITE
from evenfeed.runtime.positions.orders import Again, Every, Forward, Shuffled, Slots, first_round


def listed(order, start=0, count=None):
    return order.stretch(start, order.size if count is None else count).tolist()


def mixed(size, buffer, *, seed=(1, 2), reshuffle=True):
    return Shuffled(Forward(size), buffer, seed, reshuffle=reshuffle)


ORDERS = [
    Forward(20),
    Every(Forward(20), 3, 4, 4),
    Again(Forward(4), 5),
    Again(mixed(6, 3), 4),
    Again(mixed(1, 9), 12),
    Again(mixed(4, 1), 5),
    Again(mixed(6, 3, reshuffle=False), 4),
    Again(Every(Forward(20), 3, 4, 4), 5),
    mixed(20, 5),
    mixed(20, 20),
    mixed(20, 99),
    Every(mixed(40, 7), 1, 2, 18),
    Shuffled(Again(mixed(7, 3), 3), 4, (5,), reshuffle=True),
    Shuffled(mixed(20, 20), 20, (5,), reshuffle=True),
    Every(Again(mixed(5, 5), -1), 7, 3, 20),
]


@pytest.mark.parametrize("order", ORDERS)
@given(data=st.data())
def test_any_steps_and_any_stretch_are_parts_of_the_whole(order, data):
    whole = listed(order)
    assert len(whole) == order.size
    start = data.draw(st.integers(0, order.size - 1))
    count = data.draw(st.integers(1, order.size - start))
    assert listed(order, start, count) == whole[start : start + count]
    steps = data.draw(st.lists(st.integers(0, order.size - 1), min_size=1, max_size=9))
    assert order.at(np.array(steps, np.int64)).tolist() == [whole[step] for step in steps]


@pytest.mark.parametrize("order", ORDERS)
def test_epoch_0_is_the_order_itself_and_another_epoch_has_the_same_size(order):
    assert listed(order.of_epoch(0)) == listed(order)
    assert order.of_epoch(3).size == order.size
    assert listed(order.of_epoch(3)) == listed(order.of_epoch(3))


def test_rounds_are_numbered_through():
    rounds = [first_round(epoch, 3) + number for epoch in range(4) for number in range(3)]
    assert rounds == list(range(12))
    endless = {first_round(epoch, -1) + number for epoch in range(4) for number in range(100)}
    assert len(endless) == 400


def test_an_endless_repeat_goes_on_for_as_long_as_one_asks():
    order = Again(Forward(3), -1)
    assert order.size == -1
    assert listed(order, 10**15, 4) == [10**15 % 3, (10**15 + 1) % 3, (10**15 + 2) % 3, 10**15 % 3]


def test_a_fixed_shuffle_is_one_in_all_epochs():
    fixed = mixed(30, 10, reshuffle=False)
    assert listed(fixed.of_epoch(4)) == listed(fixed)
    assert listed(mixed(30, 10).of_epoch(4)) != listed(mixed(30, 10))


def test_rounds_that_are_the_same_are_computed_once():
    steady = [Forward(3), mixed(1, 5), mixed(5, 1), Every(mixed(7, 3, reshuffle=False), 1, 2, 3)]
    for order in steady:
        assert order.of_epoch(4) is order
        assert listed(Again(order, 50)) == 50 * listed(order)


def test_a_far_step_of_a_small_buffer_is_found_without_those_before_it():
    order = mixed(10**12, 100)
    there = listed(order, 10**12 - 1000, 1000)
    assert len(set(there)) == 1000
    assert max(there) == 10**12 - 1
    assert order.at(np.array([5 * 10**11])).tolist() == listed(order, 5 * 10**11, 1)


def test_a_full_shuffle_is_asked_for_single_steps_without_all_between():
    order = Every(Shuffled(mixed(10**9, 10**9), 10**9, (7,), reshuffle=True), 0, 10**5, 10**4)
    assert len(set(order.at(np.arange(100)).tolist())) == 100


@pytest.mark.parametrize("buffer", [2**40, 2**62, 2**63 - 1])
def test_a_buffer_that_does_not_fit_into_memory_raises_with_its_size(buffer):
    with pytest.raises(ResourceExhaustedError, match=f"shuffle buffer of {buffer} elements does"):
        mixed(INFINITE, buffer).stretch(0, 3)


def test_positions_end_where_integers_do():
    with pytest.raises(OutOfRangeError, match=f"but element {2**63 - 1} was requested"):
        mixed(INFINITE, 3).stretch(2**63 - 1, 3)


def test_a_shuffle_that_is_read_to_its_end_finds_no_slot_again(monkeypatch):
    found = []
    rebuilt = Slots._rebuilt
    monkeypatch.setattr(
        Slots, "_rebuilt", lambda slots, step: found.append(step) or rebuilt(slots, step)
    )
    order = Shuffled(Forward(1000), 64, (1, 2), reshuffle=True)
    parts = [order.stretch(start, min(100, 1000 - start)) for start in range(0, 1000, 100)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(1000))
    assert found == [0]
