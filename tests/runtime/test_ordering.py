from evenfeed.plan.sources import Range
from evenfeed.runtime.ordering import PlayAgain
from evenfeed.runtime.sources import CountRange


class Rounds:
    """Starts ranges, and counts how many."""

    def __init__(self, size):
        self.size = size
        self.started = 0

    def __call__(self):
        self.started += 1
        return CountRange(Range(0, self.size))


def read_all(operator, most, blocks=20):
    found = []
    for _ in range(blocks):
        block = operator.read(most)
        found.append(None if block is None else block.columns[0].tolist())
        if block is None:
            return found
    return found


def test_a_block_never_crosses_the_end_of_a_round():
    assert read_all(PlayAgain(Rounds(3), 2), 2) == [[0, 1], [2], [0, 1], [2], None]


def test_no_round_is_started_before_it_is_needed():
    rounds = Rounds(2)
    again = PlayAgain(rounds, 3)
    assert rounds.started == 0
    again.read(5)
    assert rounds.started == 1
    again.read(5)
    assert rounds.started == 2


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


def test_the_end_stays_the_end():
    again = PlayAgain(Rounds(1), 1)
    assert read_all(again, 5) == [[0], None]
    assert again.read(5) is None
