import tracemalloc

import numpy as np
import pytest

from evenfeed.core.block import Block, concatenated, of_rows, stacked


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
        ((np.array([b"a" * 92] * 1000, object),), 1000, 100),
        ((np.array([[b"abcd"] * 3] * 5, object),), 5, 36),
        ((np.array([], object),), 0, 0),
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


def unlike(*lengths):
    """Return a Block whose elements have these lengths."""
    return Block(([np.full(length, length) for length in lengths], None), len(lengths))


def lengths(block):
    return [len(part) for part in block.columns[0]]


def test_elements_of_unlike_shapes_are_a_list():
    block = unlike(1, 2, 3)
    assert block.row(2)[0].tolist() == [3, 3, 3]
    assert block.row(2)[1] is None
    assert lengths(block.cut(1, 9)) == [2, 3]
    assert lengths(block.gather(np.array([2, 0, 2]))) == [3, 1, 3]
    assert block.bytes_per_row == (1 + 2 + 3) * 8 // 3


def test_rows_are_gathered_in_any_order_and_number():
    block = Block((np.array([[1, 2], [3, 4]]), None, np.array([b"a", b"b"], object)), 2)
    gathered = block.gather(np.array([1, 1, 0]))
    assert gathered.length == 3
    assert gathered.columns[0].tolist() == [[3, 4], [3, 4], [1, 2]]
    assert gathered.columns[1] is None
    assert gathered.columns[2].tolist() == [b"b", b"b", b"a"]


def test_blocks_of_unlike_shapes_are_joined_as_a_list():
    joined = concatenated([unlike(1, 2), Block((np.ones((1, 3)), None), 1), unlike(4)])
    assert lengths(joined) == [1, 2, 3, 4]
    assert joined.columns[1] is None
    assert joined.length == 4


@pytest.mark.parametrize("scalars", [np.array([1, 2]), np.array([b"a", b"b"], object)])
def test_scalars_joined_with_rows_stay_arrays(scalars):
    joined = concatenated([Block((scalars,), 2), Block((scalars[None],), 1)])
    assert [part.shape for part in joined.columns[0]] == [(), (), (2,)]
    assert all(part.dtype == scalars.dtype for part in joined.columns[0])
    assert joined.row(1)[0].item() == scalars[1]


def test_a_copy_shares_no_memory():
    column = np.arange(3)
    block = Block((column, None), 3).copy()
    assert not np.shares_memory(block.columns[0], column)


def test_elements_are_replaced():
    block = Block((np.arange(4), None), 4).copy()
    replaced = block.replaced(np.array([3, 0]), Block((np.array([7, 8]), None), 2))
    assert replaced.columns[0].tolist() == [8, 1, 2, 7]
    assert replaced.columns[1] is None


def test_elements_are_replaced_by_those_of_another_shape():
    block = Block((np.zeros((3, 1)), None), 3).copy()
    replaced = block.replaced(np.array([1]), Block((np.ones((1, 2)), None), 1))
    assert lengths(replaced) == [1, 2, 1]
    assert lengths(replaced.replaced(np.array([0]), unlike(5))) == [5, 2, 1]


def test_scalars_are_replaced_by_rows():
    block = Block((np.array([b"a", b"b"], object),), 2).copy()
    replaced = block.replaced(np.array([0]), Block((np.array([[b"c", b"d"]], object),), 1))
    assert [part.tolist() for part in replaced.columns[0]] == [[b"c", b"d"], b"b"]


def test_elements_given_one_by_one_are_stacked_where_they_fit():
    block = of_rows([[np.array(1), None, np.zeros(1)], [np.array(2), None, np.zeros(2)]])
    assert block.columns[0].tolist() == [1, 2]
    assert block.columns[1] is None
    assert lengths(Block((block.columns[2],), 2)) == [1, 2]


def test_scalars_are_stacked_if_they_have_one_type():
    column = stacked([np.int8(1), np.int8(-2)])
    assert (column.dtype, column.tolist()) == (np.int8, [1, -2])
    assert stacked([np.int8(1), np.int16(300)]) == [1, 300]
    assert stacked([np.float32(1), np.ones(2, np.float32)])[1].tolist() == [1, 1]


@pytest.mark.parametrize(
    "kind", [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64]
)
def test_scalars_of_each_type_become_an_array_to_write_to(kind):
    column = stacked([kind(1), kind(0), kind(1)])
    assert type(column) is np.ndarray
    assert (column.dtype, column.tolist()) == (np.dtype(kind), [1, 0, 1])
    assert column.flags.writeable
    assert column.flags.owndata


def test_text_is_stacked_as_text():
    column = stacked([np.array(b"a\0", object), np.array(b"", object)])
    assert (column.dtype, column.tolist()) == (np.dtype(object), [b"a\0", b""])


def test_blocks_are_the_same_if_they_differ_by_rounding_only():
    nan = np.array([np.nan, 0.3])
    texts = np.array([b"a", b"b"], object)
    block = Block((nan, None, texts, [np.zeros(1), np.zeros(2)]), 2)
    assert block.is_same(block.copy())
    assert block.is_same(Block((list(nan), None, texts, block.columns[3]), 2))
    rounded = Block((np.array([np.nan, 0.1 + 0.2]), *block.columns[1:]), 2)
    assert block.is_same(rounded)
    for column, other in (
        (0, np.array([np.nan, 0.30001])),
        (0, np.array([np.inf, 0.3])),
        (0, nan.astype(np.float32)),
        (0, nan[:, None]),
        (1, nan),
        (2, np.array([b"a", b"c"], object)),
        (3, [np.zeros(1), np.zeros(3)]),
    ):
        columns = list(block.columns)
        columns[column] = other
        assert not block.is_same(Block(tuple(columns), 2))
    assert not block.is_same(Block(block.columns[:3], 2))
    assert not block.is_same(block.cut(0, 1))


def test_gathering_rows_of_a_view_copies_these_rows_only():
    whole = np.arange(2_000_000, dtype=np.int8).reshape(-1, 200)
    block = Block((whole[:, :100],), len(whole))
    tracemalloc.start()
    found = block.gather(np.array([5, 3]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(found.columns[0], whole[[5, 3], :100])
    assert peak < 100_000
