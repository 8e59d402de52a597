import json

import numpy as np
import pytest
from tests.plans import assert_all_equal, events, read_with_states
from tests.resuming import assert_resumes
from tests.unknown import Watched, count, read_all

from evenfeed.core.block import Block
from evenfeed.core.errors import DataLossError
from evenfeed.dataset import Dataset, plan_of
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.operators.ordering import ShuffleBuffer, TakeEvery, TakeSome
from evenfeed.runtime.operators.repeating import PlayAgain


class Rounds:
    """Starts ranges, and counts them."""

    def __init__(self, size):
        self.size = size
        self.started = 0
        self.numbers = []

    def __call__(self, number):
        self.started += 1
        self.numbers.append(number)
        return count(self.size)


def test_a_block_never_crosses_the_end_of_a_round():
    assert read_all(PlayAgain(Rounds(3), 2), 2) == [[0, 1], [2], [0, 1], [2], None]


def test_no_round_is_started_before_it_is_needed():
    rounds = Rounds(2)
    again = PlayAgain(rounds, 3)
    again.read(5)
    assert rounds.started == 1
    again.read(5)
    assert rounds.started == 2
    assert rounds.numbers == [0, 1]


def test_never_means_never():
    rounds = Rounds(2)
    assert read_all(PlayAgain(rounds, 0), 5) == [None]
    assert rounds.started == 0


def test_an_endless_repeat_goes_on():
    assert read_all(PlayAgain(Rounds(1), -1), 5) == [[0]] * 20


def test_an_endless_repeat_of_nothing_ends():
    rounds = Rounds(0)
    again = PlayAgain(rounds, -1)
    assert again.read(5) is None
    assert again.read(5) is None
    assert rounds.started == 1


def uneven(*sizes):
    """Return a function that starts rounds of these sizes in turn."""
    return lambda number: count(sizes[number])


def test_empty_rounds_are_counted_and_passed_over():
    assert read_all(PlayAgain(uneven(0, 0, 1, 0, 2), 5), 5) == [[0], [0, 1], None]
    assert read_all(PlayAgain(uneven(2, 0, 0), 3), 5) == [[0, 1], None]
    rounds = Rounds(0)
    assert read_all(PlayAgain(rounds, 4), 5) == [None]
    assert rounds.numbers == [0, 1, 2, 3]


def test_without_a_count_the_first_empty_round_is_the_last():
    assert read_all(PlayAgain(uneven(1, 2, 0, 1), -1), 5) == [[0], [0, 1], None]


def test_a_position_among_empty_rounds_is_exact():
    whole = assert_resumes(lambda: PlayAgain(uneven(0, 0, 1, 0, 2, 0), 6))
    assert len(whole) == 3


def first_drawn(seed):
    """Return the first of three numbers in a random order if it is 0: most rounds are empty."""
    return Dataset.range(3).shuffle(3, seed=seed).take(1).filter(lambda x: x == 0)


@pytest.mark.parametrize(
    ("repeated", "least"),
    [
        (lambda d: d.repeat(20), 3),
        (lambda d: d.repeat(5).repeat(4), 3),
        (lambda d: d.concatenate(d).repeat(10), 3),
        (lambda d: Dataset.zip(d.repeat(30), Dataset.range(4)), 4),
        (lambda d: d.repeat(12).batch(2).repeat(3), 3),
        (lambda d: d.repeat(3).repeat().repeat(4), 3),
        (lambda d: d.repeat(20).prefetch(2), 3),
    ],
)
def test_a_dataset_with_empty_epochs_resumes_behind_any_element(repeated, least):
    for seed in range(4):
        found, states = read_with_states(ElementIterator(plan_of(repeated(first_drawn(seed)))), 40)
        assert len(found) >= least
        for passed, state in enumerate(states):
            iterator = ElementIterator(plan_of(repeated(first_drawn(seed))))
            iterator.set_state(state)
            assert_all_equal(events(iterator, 40), found[passed:])


def test_a_predicate_that_changes_its_mind_is_asked_in_every_round():
    asked = []

    def odd_rounds(number):
        asked.append(int(number))
        return bool(len(asked) % 4 > 1)

    rows = Dataset.range(2).filter(odd_rounds).repeat(5)
    assert [int(x) for x in rows] == [1, 0, 1, 0, 1]


def test_the_end_stays_the_end():
    again = PlayAgain(Rounds(1), 1)
    assert read_all(again, 5) == [[0], None]
    assert again.read(5) is None


def test_a_round_that_is_over_is_closed():
    played = []

    def start(number):
        played.append(Watched(number))
        return played[-1]

    again = PlayAgain(start, 3)
    assert read_all(again, 5) == [[0], [1], [2], None]
    assert [one.closed for one in played] == [True] * 3


def test_rounds_of_errors_are_rounds():
    again = PlayAgain(lambda number: Watched(ValueError("bad")), 3)
    assert read_all(again, 5) == [ValueError, ValueError, ValueError, None]


def test_some_are_taken_after_some_are_skipped():
    assert read_all(TakeSome(count(9), 2, 4), 3) == [[2, 3, 4], [5], None]
    assert read_all(TakeSome(count(9), 7, None), 9) == [[7, 8], None]
    assert read_all(TakeSome(count(9), 0, 0), 9) == [None]
    assert read_all(TakeSome(count(3), 5, None), 9) == [None]


def test_nothing_is_read_behind_the_last_that_is_taken():
    child = Watched(*range(9))
    assert read_all(TakeSome(child, 1, 2), 9) == [[1], [2], None]
    assert child.next == 3


def test_every_third_is_taken_and_no_more_is_read():
    child = Watched(*range(9))
    every = TakeEvery(child, 3, 1)
    assert every.read(1).columns[0].tolist() == [1]
    assert child.next == 2
    assert read_all(every, 9) == [[4], [7], None]
    assert read_all(TakeEvery(count(10), 3, 1), 2) == [[1, 4], [7], None]


def buffered(child, size=3):
    return ShuffleBuffer(child, size, (1, 2))


def test_an_error_does_not_empty_the_buffer():
    script = (0, 1, ValueError("in the first fill"), 3, 4, ValueError("later"), 6, 7)
    found = read_all(buffered(Watched(*script)), 1)
    assert found.index(ValueError) == 0
    assert found.count(ValueError) == 2
    assert sorted(x[0] for x in found if isinstance(x, list)) == [0, 1, 3, 4, 6, 7]


@pytest.mark.parametrize("size", [1, 3, 5, None])
@pytest.mark.parametrize("done", range(10))
def test_a_buffer_is_filled_again_past_errors(size, done):
    script = (0, 1, ValueError("first"), 3, 4, ValueError("later"), 6, 7)
    whole = read_all(buffered(Watched(*script), size), 1)
    one, two = buffered(Watched(*script), size), buffered(Watched(*script), size)
    assert read_all(one, 1, done) == whole[:done]
    two.restore(one.state())
    assert read_all(two, 1) == (whole[done:] or [None])


@pytest.mark.parametrize("most", [1, 3, 40])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_buffer_restarts_at_the_oldest_element_that_it_holds(size, most):
    script = [ValueError(f"{n}") if n % 7 == 2 else n for n in range(80)]
    one, whole, kept = buffered(Watched(*script), size), [], []
    while not whole or whole[-1] is not None:
        kept.append((len(whole), json.dumps(one.state())))
        whole += read_all(one, most, 1)
    kept.append((len(whole), json.dumps(one.state())))
    assert any(json.loads(state)[3:] for _, state in kept)
    for done, state in kept:
        watched = Watched(*script)
        two = buffered(watched, size)
        two.restore(json.loads(state))
        assert read_all(two, most, 200) == (whole[done:] or [None])
        again = buffered(Watched(*script), size)
        again.restore(json.loads(json.dumps(two.state())))
        assert read_all(again, most) == [None]


def test_restoring_a_buffer_costs_the_same_after_any_number_of_elements():
    costs, sizes = [], []
    for done in (2_000, 20_000):
        one, watched = buffered(count(30_000), 50), count(30_000)
        while one.state()[1] < done:
            one.read(min(done - one.state()[1], 64))
        state = json.dumps(one.state())
        two = buffered(watched, 50)
        two.restore(json.loads(state))
        costs.append(watched.state() - json.loads(state)[3][0])
        sizes.append(len(state))
        assert two.read(9).columns[0].tolist() == one.read(9).columns[0].tolist()
    assert max(costs) < 1_000
    assert sizes[1] <= sizes[0] + 10


def test_a_buffer_over_data_that_became_shorter_is_refused():
    one = buffered(count(200))
    for _ in range(100):
        one.read(1)
    with pytest.raises(DataLossError, match="The data ends after 95 elements"):
        buffered(count(95)).restore(one.state())


def test_a_buffer_of_elements_of_several_shapes():
    class Rows(Watched):
        def read(self, most):
            block = super().read(most)
            length = 0 if block is None else int(block.columns[0][0])
            return None if block is None else Block((np.full((1, length), length),), 1)

    found = read_all(buffered(Rows(1, 2, 3, 4, 5, 6)), 1)
    assert sorted(len(x[0]) for x in found[:-1]) == [1, 2, 3, 4, 5, 6]
