import numpy as np
import pytest
from tests.unknown import Watched, count, read_all

from evenfeed.core.block import Block
from evenfeed.runtime.operator import (
    PushbackReader,
    read_before_error,
    read_full,
    rows_per_block,
)


def test_reads_go_on_until_the_count_is_there():
    drops = Watched(*range(10))
    assert [block.length for block in read_full(drops, 3)] == [1, 1, 1]
    assert drops.asked == [3, 2, 1]


def test_reads_end_with_the_data():
    assert len(list(read_full(Watched(1, 2), 5))) == 2
    assert list(read_full(count(0), 5)) == []


def test_what_has_come_is_not_asked_for_again():
    blocks = list(read_full(count(9), 5))
    assert [block.columns[0].tolist() for block in blocks] == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("number", [0, -1])
def test_nothing_is_read_where_nothing_is_wanted(number):
    drops = Watched(1, 2)
    assert list(read_full(drops, number)) == []
    assert drops.asked == []


def test_what_came_before_an_error_is_kept():
    error = ValueError("third")
    drops = Watched(1, 2, error, 4)
    blocks, errors = read_before_error(drops, 4)
    assert [block.columns[0].tolist() for block in blocks] == [[1], [2]]
    assert errors == [error]
    blocks, errors = read_before_error(drops, 4)
    assert [block.columns[0].tolist() for block in blocks] == [[4]]
    assert errors == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_program_is_no_error_of_an_element(kind):
    class Interrupted(Watched):
        def read(self, most):
            raise kind

    with pytest.raises(kind):
        read_before_error(Interrupted(), 4)


def test_a_feed_gives_again_what_was_given_back():
    feed = PushbackReader(count(6))
    assert feed.read(4).columns[0].tolist() == [0, 1, 2, 3]
    feed.give_back(3)
    assert feed.read(2).columns[0].tolist() == [1, 2]
    assert feed.read(2).columns[0].tolist() == [3]
    assert feed.read(9).columns[0].tolist() == [4, 5]
    assert feed.read(9) is None


def test_the_position_of_a_feed_is_behind_what_was_used():
    feed = PushbackReader(count(6))
    feed.read(4)
    feed.give_back(3)
    again = PushbackReader(count(6))
    again.restore(feed.state())
    assert again.read(9).columns[0].tolist() == [1, 2, 3, 4, 5]


def test_a_feed_goes_on_behind_an_error():
    feed = PushbackReader(Watched(1, ValueError("second"), 3))
    feed.read(1)
    with pytest.raises(ValueError, match="second"):
        feed.read(1)
    assert feed.state() == [2, 0, 2]
    assert feed.read(1).columns[0].tolist() == [3]


def test_what_a_feed_refuses_is_raised_in_its_place():
    feed = PushbackReader(count(6))
    feed.read(4)
    feed.give_back_failed(3, ValueError("second"))
    again = PushbackReader(count(6))
    again.restore(feed.state())
    assert (feed.number, again.number) == (1, 1)
    with pytest.raises(ValueError, match="second"):
        feed.read(5)
    assert feed.number == 2
    assert feed.read(5).columns[0].tolist() == [2, 3]
    assert again.read(5).columns[0].tolist() == [1, 2, 3, 4, 5]


def test_a_feed_counts_what_fails_too():
    feed = PushbackReader(Watched(1, ValueError(), 3))
    read_all(feed, 1)
    assert feed.number == 3


def test_watched_operators_show_errors_in_their_place():
    assert read_all(Watched(1, ValueError(), 2), 1) == [[1], ValueError, [2], None]


def test_more_bytes_are_read_at_a_time_if_many_columns_share_them():
    def most(columns):
        return rows_per_block(Block(tuple(np.zeros((columns, 4))), 4))

    assert most(1) == 1 << 17
    assert most(16) == 1 << 13
    assert most(1000) == most(4000) == 1 << 12  # 32 KB of each column
