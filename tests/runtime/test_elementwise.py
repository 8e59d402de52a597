import pytest
from tests.failing import ERROR, outcome
from tests.saying import error_saying
from tests.unknown import Watched, count

import evenfeed as tf
from evenfeed.runtime.operators.elementwise import CountElements, DrawKeys


def test_numbers_go_on_from_block_to_block():
    numbered = CountElements(count(10, 15), 3)
    blocks = [numbered.read(2), numbered.read(9)]
    assert [[c.tolist() for c in b.columns] for b in blocks] == [
        [[3, 4], [10, 11]],
        [[5, 6, 7], [12, 13, 14]],
    ]
    assert numbered.read(9) is None


def test_an_element_that_fails_has_a_number_too():
    numbered = CountElements(Watched(7, ValueError("second"), 9), 0)
    numbers = []
    for _ in range(3):
        try:
            numbers.append(int(numbered.read(1).columns[0][0]))
        except ValueError:
            numbers.append(None)
    assert numbers == [0, None, 2]


def test_numbers_are_part_of_the_position():
    one, two = CountElements(count(9), 5), CountElements(count(9), 5)
    one.read(4)
    two.restore(one.state())
    assert [column.tolist() for column in two.read(2).columns] == [[9, 10], [4, 5]]


def test_an_element_that_fails_has_bits_too():
    failing = DrawKeys(Watched(7, ValueError("second"), 9), (1, 2))
    whole = DrawKeys(count(3), (1, 2)).read(3).columns[0].tolist()
    assert failing.read(1).columns[0].tolist() == whole[:1]
    with pytest.raises(ValueError, match="second"):
        failing.read(1)
    assert failing.read(1).columns[0].tolist() == whole[2:]


@pytest.mark.parametrize("known", [True, False])
def test_numbers_beyond_64_bits_are_an_error_each(known):
    four = tf.data.Dataset.range(4)
    source = four if known else four.filter(lambda x: x >= 0)
    numbered = source.enumerate(2**63 - 2)
    assert outcome(numbered.map(lambda n, _: n)) == [2**63 - 2, 2**63 - 1, ERROR, ERROR]
    assert [n.tolist() for n, _ in numbered.take(2).batch(5)] == [[2**63 - 2, 2**63 - 1]]
    with error_saying(tf.errors.InvalidArgumentError, "enumerate cannot count beyond …", fix="…"):
        list(numbered.batch(2))


def test_numbers_of_a_distant_position_do_not_wrap_around():
    endless = tf.data.Dataset.range(2).repeat().enumerate(5).skip(2**63 - 7).take(3)
    assert outcome(endless.map(lambda n, _: n)) == [2**63 - 2, 2**63 - 1, ERROR]
