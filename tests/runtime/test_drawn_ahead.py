import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.randomness.random_bits import Permutation, key_of
from evenfeed.runtime.positions import drawn_ahead
from evenfeed.runtime.positions.drawn_ahead import DrawnAhead
from evenfeed.runtime.positions.orders import Again, Forward, Shuffled

SIZE = 1 << 14  # the fewest rows whose order another thread draws


@pytest.fixture
def begun(monkeypatch):
    """The permutations that another thread drew."""
    found = []

    def noted(key, size):
        found.append((key, size))
        return Permutation(key, size)

    monkeypatch.setattr(drawn_ahead, "Permutation", noted)
    return found


def test_an_order_that_was_drawn_ahead_is_the_one_of_its_key(begun):
    ahead = DrawnAhead()
    ahead.begin(5, SIZE)
    drawn = ahead.permutation(5, SIZE).stretch(0, SIZE)
    assert begun == [(5, SIZE)]
    np.testing.assert_array_equal(drawn, Permutation(5, SIZE).stretch(0, SIZE))


def test_short_and_computed_orders_are_not_drawn_ahead(begun):
    ahead = DrawnAhead()
    for size in (SIZE - 1, 1 << 23):
        ahead.begin(5, size)
    assert begun == []
    assert (
        ahead.permutation(5, 3).stretch(0, 3).tolist() == Permutation(5, 3).stretch(0, 3).tolist()
    )


def test_orders_that_nobody_asks_for_are_dropped(begun):
    ahead = DrawnAhead()
    for key in range(9):
        ahead.begin(key, SIZE)
    assert len(ahead._begun) == 4
    assert [ahead.permutation(key, SIZE).stretch(0, 1)[0] for key in (0, 8)] == [
        Permutation(key, SIZE).stretch(0, 1)[0] for key in (0, 8)
    ]


def test_every_round_of_a_repeat_is_the_order_of_its_epoch(begun):
    shuffled = Shuffled(Forward(SIZE), SIZE, (3,), reshuffle=True)
    again = Again(shuffled, 4)
    steps = [again.stretch(at, 1000) for at in range(0, 4 * SIZE - 1000, 1000)]
    rounds = [Permutation(key_of(key_of(3, epoch), 1), SIZE).stretch(0, SIZE) for epoch in range(4)]
    read = np.concatenate(steps)
    np.testing.assert_array_equal(read, np.concatenate(rounds)[: len(read)])
    # Each order was drawn once; perhaps also a fifth, because the fourth round does not know that it is the last.
    expected = [(key_of(key_of(3, epoch), 1), SIZE) for epoch in range(5)]
    assert begun in (expected[:4], expected)


@pytest.mark.parametrize("after", [1, 20, 36, 70])
def test_a_repeated_shuffle_resumes_where_it_was(after):
    rows = tf.data.Dataset.range(SIZE).shuffle(SIZE, seed=4).map(lambda x: x + 1)
    dataset = rows.batch(512).repeat()
    iterator = iter(dataset)
    for _ in range(after):
        next(iterator)
    state = iterator.get_state()
    expected = [next(iterator) for _ in range(70)]
    resumed = iter(dataset)
    resumed.set_state(state)
    np.testing.assert_array_equal([next(resumed) for _ in range(70)], expected)
