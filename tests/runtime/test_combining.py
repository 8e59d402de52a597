import pytest
from tests.resuming import assert_resumes
from tests.unknown import Watched, count, read_all

from evenfeed.runtime.operators.combining import ReadInTurn, ReadTogether

BAD = ValueError("bad")


def together_of(parts):
    return ReadTogether(parts, [True] * len(parts))


def rows(operator, most, blocks=20):
    """Return the elements, with the class of an error in its place."""
    found = []
    while len(found) < blocks:
        try:
            block = operator.read(most)
        except ValueError:
            found.append(ValueError)
            continue
        if block is None:
            return found
        found += [
            tuple(p.item() for p in block.row(i) if p is not None) for i in range(block.length)
        ]
    return found


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_blocks_of_unlike_lengths_are_cut_to_one(most):
    together = together_of([count(5), Watched(7, 8, 9), count(4)])
    assert rows(together, most) == [(0, 7, 0), (1, 8, 1), (2, 9, 2)]


@pytest.mark.parametrize("most", [1, 2, 9])
@pytest.mark.parametrize("turned", [False, True])
def test_where_one_fails_all_pass_an_element(most, turned):
    parts = [count(10, 15), Watched(0, BAD, 2, 3, BAD)]
    found = rows(together_of(parts[::-1] if turned else parts), most)
    pairs = [(10, 0), ValueError, (12, 2), (13, 3), ValueError]
    assert found == [p if p is ValueError or not turned else p[::-1] for p in pairs]


def test_the_end_stays_the_end_whatever_the_others_hold():
    together = together_of([Watched(0, 1, BAD), count(1)])
    assert rows(together, 1) == [(0, 0)]
    for _ in range(3):
        assert together.read(1) is None
    again = together_of([Watched(0, 1, BAD), count(1)])
    again.restore(together.state())
    assert again.read(1) is None


def test_the_first_error_of_an_element_stands_for_it():
    other = ValueError("other")
    together = together_of([Watched(BAD, 1), Watched(other, 2)])
    with pytest.raises(ValueError, match="bad"):
        together.read(1)
    assert rows(together, 1) == [(1, 2)]


@pytest.mark.parametrize("done", range(5))
def test_parts_go_on_side_by_side(done):
    def make():
        return together_of([count(10, 19), Watched(0, BAD, 2, 3)])

    whole = [(10, 0), ValueError, (12, 2), (13, 3)]
    one, two = make(), make()
    assert rows(one, 3, done) == whole[:done]
    two.restore(one.state())
    assert rows(two, 3) == whole[done:]


def test_one_is_read_to_its_end_and_then_the_next():
    parts = [Watched(0, 1), Watched(2, BAD, 4)]
    chain = ReadInTurn(in_turn(parts))
    assert chain.children() == (parts[0],)
    assert read_all(chain, 5) == [[0], [1], [2], ValueError, [4], None]
    assert chain.children() == ()
    assert [part.closed for part in parts] == [True, True]


def test_the_next_is_started_when_the_one_before_has_ended():
    started = []
    chain = ReadInTurn(lambda n: started.append(n) or (Watched(n) if n < 3 else None))
    assert started == [0]
    chain.read(1)
    assert started == [0]
    chain.read(1)
    assert started == [0, 1]


def test_a_chain_goes_on_where_it_was():
    whole = assert_resumes(lambda: ReadInTurn(in_turn([Watched(0, 1), Watched(), Watched(2, 3)])))
    assert len(whole) == 4


def in_turn(parts):
    return lambda number: parts[number] if number < len(parts) else None


def test_closing_closes_all_that_is_read():
    parts = [Watched(), Watched()]
    together_of(parts).close()
    assert [part.closed for part in parts] == [True, True]
