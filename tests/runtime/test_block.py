import numpy as np
import pytest

from evenfeed.runtime.block import Block, concatenated


def test_a_row_has_a_part_for_each_column():
    texts = np.array([b"a", b"b"], object)
    block = Block((np.arange(4).reshape(2, 2), None, texts, np.array([0.5, 1.5])), 2)
    numbers, none, text, number = block.row(1)
    assert numbers.tolist() == [2, 3]
    assert none is None
    assert (text.shape, text.dtype, text.item()) == ((), np.dtype(object), b"b")
    assert (number.shape, number.dtype, float(number)) == ((), np.float64, 1.5)


def test_a_row_is_a_view():
    column = np.arange(4).reshape(2, 2)
    assert np.shares_memory(Block((column,), 2).row(0)[0], column)


@pytest.mark.parametrize(
    ("columns", "length", "expected"),
    [
        ((np.zeros((4, 3), np.float32), np.zeros(4, np.int8)), 4, 13),
        ((None, np.zeros(2)), 2, 8),
        ((np.zeros((2, 0)),), 2, 0),
        ((np.zeros(0),), 0, 0),
    ],
)
def test_a_block_knows_how_large_its_rows_are(columns, length, expected):
    assert Block(columns, length).bytes_per_row == expected


def test_blocks_are_joined_in_order():
    one = Block((np.array([1, 2]), None, np.array([b"a", b"b"], object)), 2)
    two = Block((np.array([3]), None, np.array([b"c"], object)), 1)
    joined = concatenated([one, two, one])
    assert joined.length == 5
    assert joined.columns[0].tolist() == [1, 2, 3, 1, 2]
    assert joined.columns[1] is None
    assert joined.columns[2].tolist() == [b"a", b"b", b"c", b"a", b"b"]


def test_one_block_is_not_copied():
    block = Block((np.arange(3),), 3)
    assert concatenated([block]) is block


@pytest.mark.parametrize(
    ("start", "stop", "expected"), [(0, 2, [0, 1]), (1, 9, [1, 2]), (0, 3, [0, 1, 2])]
)
def test_a_block_is_cut_without_a_copy(start, stop, expected):
    block = Block((np.arange(3), None), 3)
    piece = block.cut(start, stop)
    assert piece.columns[0].tolist() == expected
    assert piece.length == len(expected)
    assert piece.columns[1] is None
    assert np.shares_memory(piece.columns[0], block.columns[0])
