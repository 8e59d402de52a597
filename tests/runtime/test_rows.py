import numpy as np
import pytest

import evenfeed as tf
from evenfeed.plan.sources import Range
from evenfeed.runtime.operators.sources import Arrays, Numbers
from evenfeed.runtime.positions.orders import Every, Forward, Order
from evenfeed.runtime.positions.rows import (
    Chained,
    Numbered,
    OneRow,
    Reordered,
    Rounds,
    Walk,
    Zipped,
)


def positions(*numbers):
    return np.array(numbers, np.int64)


def numbers(*args):
    return Numbers(Range(*args))


def listed(block):
    return [
        [None if part is None else part.tolist() for part in block.row(i)]
        for i in range(block.length)
    ]


class Backward(Order):
    def __init__(self, size):
        self.size = size

    def at(self, steps):
        return self.size - 1 - steps


def test_rows_in_another_order():
    rows = Reordered(numbers(0, 5), Backward(5))
    assert rows.size == 5
    assert listed(rows.fetch(positions(0, 4))) == [[4], [0]]
    assert listed(rows.run(1, 2)) == [[3], [2]]


def test_rows_side_by_side():
    rows = Zipped([numbers(0, 5), Arrays([np.array([7, 8, 9]), None], 3)], 3)
    assert listed(rows.fetch(positions(2, 0))) == [[2, 9, None], [0, 7, None]]
    assert listed(rows.run(1, 2)) == [[1, 8, None], [2, 9, None]]


def test_rows_of_one_and_then_of_the_other():
    rows = Chained([numbers(0, 3), numbers(10, 12)])
    assert rows.size == 5
    assert listed(rows.fetch(positions(4, 0, 3, 2, 2))) == [[11], [0], [10], [2], [2]]
    assert listed(rows.fetch(positions(4, 3))) == [[11], [10]]
    assert listed(rows.fetch(positions(1, 0))) == [[1], [0]]


def test_rows_followed_by_endless_ones_are_endless():
    endless = Reordered(numbers(0, 2), Every(Backward(2), 0, 1, -1))
    assert Chained([numbers(0, 3), endless]).size == -1


def test_rows_of_two_shapes_are_a_list_of_arrays():
    texts = np.array([b"a", b"b"], object)
    rows = Chained([Arrays([texts], 2), Arrays([np.array([[b"c", b"d"]], object)], 1)])
    block = rows.fetch(positions(2, 0))
    assert [part.tolist() for part in block.columns[0]] == [[b"c", b"d"], b"a"]
    assert all(isinstance(part, np.ndarray) for part in block.columns[0])


def test_numbered_rows():
    rows = Numbered(numbers(10, 15), 100)
    assert listed(rows.fetch(positions(3, 0))) == [[103, 13], [100, 10]]


def test_rounds_have_rows_of_their_own():
    started = []

    def start(number):
        started.append(number)
        return numbers(10 * number, 10 * number + 3)

    rows = Rounds(start, 3, 4)
    assert rows.size == 12
    assert listed(rows.fetch(positions(7, 0, 1, 8))) == [[21], [0], [1], [22]]
    assert listed(rows.fetch(positions(6))) == [[20]]
    assert started == [0, 2]  # a round that is being read is not started again
    assert Rounds(start, 3, -1).size == -1


@pytest.mark.parametrize("order", [Forward(4), Backward(4)])
def test_a_walk_goes_on_at_any_step(order):
    walk = Walk(numbers(0, 4), order)
    whole = [int(order.at(positions(step))[0]) for step in range(4)]
    assert walk.read(3).columns[0].tolist() == whole[:3]
    assert walk.state() == 3
    walk.restore(1)
    assert walk.read(9).columns[0].tolist() == whole[1:]
    assert walk.read(9) is None


def test_a_walk_forward_gives_views():
    array = np.arange(5)
    assert np.shares_memory(Walk(Arrays([array], 5), Forward(5)).read(3).columns[0], array)


def test_a_large_row_is_in_memory_once_and_cannot_be_written_to():
    large, small = np.arange(10_000.0), np.arange(3)
    block = OneRow([large[None], small[None], [b"text"], None]).fetch(positions(0, 0, 0))
    assert [part.shape for part in block.columns[:2]] == [(3, 10_000), (3, 3)]
    assert all((row == large).all() for row in block.columns[0])
    assert np.shares_memory(block.columns[0], large)
    assert not block.columns[0].flags.writeable
    assert block.columns[1].tolist() == [[0, 1, 2]] * 3
    assert block.columns[2:] == ([b"text"] * 3, None)


def test_a_large_element_that_is_repeated_is_read_and_mapped_like_others():
    image = np.arange(6000.0).reshape(2, 3000)
    dataset = tf.data.Dataset.from_tensors(image).repeat(5)
    for each in dataset.map(lambda x: x + 1).batch(2):
        assert (np.asarray(each) == image + 1).all()
    assert [float(x) for x in dataset.map(lambda x: tf.sin(x)[1, 0])] == [np.sin(3000.0)] * 5
    for element in dataset.shuffle(3):
        element.numpy()[0, 0] = -1  # a copy
    assert image[0, 0] == 0
