import numpy as np
import pytest

from evenfeed.plan.sources import Range
from evenfeed.runtime.block import Block
from evenfeed.runtime.operator import Operator, read_full
from evenfeed.runtime.sources import CountRange


class Drops(Operator):
    """Gives one element at a time, and writes down what it was asked for."""

    def __init__(self, size):
        self.left = size
        self.asked = []

    def read(self, most):
        self.asked.append(most)
        if self.left == 0:
            return None
        self.left -= 1
        return Block((np.array([self.left]),), 1)


def test_reads_go_on_until_the_count_is_there():
    drops = Drops(10)
    assert [block.length for block in read_full(drops, 3)] == [1, 1, 1]
    assert drops.asked == [3, 2, 1]


def test_reads_end_with_the_data():
    assert len(list(read_full(Drops(2), 5))) == 2
    assert list(read_full(CountRange(Range(0, 0)), 5)) == []


def test_what_has_come_is_not_asked_for_again():
    blocks = list(read_full(CountRange(Range(0, 9)), 5))
    assert [block.columns[0].tolist() for block in blocks] == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("count", [0, -1])
def test_nothing_is_read_where_nothing_is_wanted(count):
    drops = Drops(2)
    assert list(read_full(drops, count)) == []
    assert drops.asked == []
