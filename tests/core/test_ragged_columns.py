"""Columns of rows whose lengths differ: Blocks hold values and splits, and move them without a loop over rows."""

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.block import Block, concatenated, cut_up, in_one_piece, length_of
from evenfeed.core.ragged import ragged_columns
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.text.text_columns import Texts
from evenfeed.dataset import plan_of
from evenfeed.runtime.build import build
from evenfeed.runtime.run import Run

ROWS = [[1, 2, 3], [], [4], [5, 6]]
WORDS = [[b"a", b"bc"], [], [b"d"]]
NESTED = [[[1], [2, 3]], [], [[4]]]


def rows_of(column):
    return [getattr(item, "to_list", getattr(item, "tolist", None))() for item in cut_up(column)]


def texts(rows):
    flat = Texts.of([word for row in rows for word in row])
    return RaggedTensor(flat, np.cumsum([0, *map(len, rows)]))


@pytest.mark.parametrize("column", [tf.ragged.constant(ROWS), tf.ragged.constant(ROWS, np.float32)])
def test_a_block_of_rows_is_cut_gathered_copied_and_joined(column):
    block = Block((column,), 4)
    assert rows_of(block.cut(1, 3).columns[0]) == ROWS[1:3]
    assert rows_of(block.cut(2, 9).columns[0]) == ROWS[2:]
    assert rows_of(block.gather(np.array([3, 0, 0])).columns[0]) == [ROWS[3], ROWS[0], ROWS[0]]
    whole = concatenated([block.cut(2, 4), block.copy()])
    assert isinstance(whole.columns[0], RaggedTensor)
    assert rows_of(whole.columns[0]) == ROWS[2:] + ROWS
    assert block.row(0)[0].tolist() == ROWS[0]
    assert block.row(0)[0].dtype == column.dtype


def test_a_copy_shares_no_values():
    column = tf.ragged.constant(ROWS)
    copy = Block((column,), 4).copy()
    copy.columns[0].flat_values[0] = 99
    assert column.to_list() == ROWS


def test_text_stays_in_its_buffer_until_it_is_read():
    block = concatenated(
        [Block((texts(WORDS),), 3).gather(np.array([2, 0])), Block((texts(WORDS),), 3)]
    )
    column = block.columns[0]
    assert isinstance(column.held, Texts)
    assert rows_of(column) == [WORDS[2], WORDS[0], *WORDS]
    assert block.row(1)[0].tolist() == WORDS[0]
    assert isinstance(column.held, Texts)
    assert column.flat_values.tolist() == [b"d", b"a", b"bc", b"a", b"bc", b"d"]


def test_rows_of_rows_keep_their_inner_lengths():
    block = Block((tf.ragged.constant(NESTED),), 3)
    assert rows_of(block.gather(np.array([2, 0])).columns[0]) == [NESTED[2], NESTED[0]]
    assert rows_of(concatenated([block, block.cut(0, 1)]).columns[0]) == [*NESTED, NESTED[0]]


def test_columns_of_other_ranks_or_dtypes_join_as_a_list():
    one, two = tf.ragged.constant(ROWS), tf.ragged.constant(NESTED)
    joined = concatenated([Block((one,), 4), Block((two,), 3)]).columns[0]
    assert isinstance(joined, list)
    assert rows_of(joined) == ROWS + NESTED
    kinds = concatenated([Block((one,), 4), Block((tf.ragged.constant(ROWS, tf.int64),), 4)])
    assert [item.dtype for item in kinds.columns[0]] == [np.int32] * 4 + [np.int64] * 4


def test_rows_of_one_length_become_an_array():
    column = in_one_piece(tf.ragged.constant([[1, 2], [3, 4]]))
    assert type(column) is np.ndarray
    assert column.tolist() == [[1, 2], [3, 4]]
    assert length_of(tf.ragged.constant(ROWS)) == 4


RAGGED = tf.data.Dataset.from_tensor_slices(tf.ragged.constant(ROWS))


@pytest.mark.parametrize(
    ("dataset", "rows"),
    [
        (RAGGED, ROWS),
        (RAGGED.take(3).skip(1), ROWS[1:3]),
        (RAGGED.filter(lambda x: True), ROWS),
        (RAGGED.batch(2), [ROWS[:2], ROWS[2:]]),
        (RAGGED.batch(2).unbatch(), ROWS),
        (RAGGED.batch(2).batch(2), [[ROWS[:2], ROWS[2:]]]),
        (RAGGED.ragged_batch(2, row_splits_dtype=tf.int32), [ROWS[:2], ROWS[2:]]),
        (RAGGED.batch(4).rebatch(2), [ROWS[:2], ROWS[2:]]),
        (RAGGED.cache(), ROWS),
    ],
)
def test_a_dataset_of_rows_moves_values_and_splits(dataset, rows):
    plan = plan_of(dataset)
    operator, found = build(plan, Run(plan)), []
    while (block := operator.read(8)) is not None:
        assert isinstance(block.columns[0], RaggedTensor)
        found += rows_of(block.columns[0])
    assert found == rows
    assert [
        element.to_list() if isinstance(element, RaggedTensor) else element.tolist()
        for element in dataset
    ] == rows
    for element in dataset:
        assert dataset.element_spec.is_compatible_with(element)


def test_shuffled_rows_stay_whole():
    shuffled = RAGGED.repeat(3).shuffle(5, seed=1)
    assert sorted(row.tolist() for row in shuffled) == sorted(ROWS * 3)


def test_padded_batch_fills_ragged_rows_at_once():
    rows = RAGGED.map(lambda x: x)
    assert next(iter(rows.padded_batch(4, padding_values=-1))).tolist() == [
        [1, 2, 3], [-1, -1, -1], [4, -1, -1], [5, 6, -1],
    ]  # fmt: skip
    assert next(iter(rows.padded_batch(4, [4]))).shape == (4, 4)
    with pytest.raises(tf.errors.DataLossError, match=r"Elements of shape \(3,\) do not fit"):
        next(iter(rows.padded_batch(4, [2])))


def test_plain_batches_of_ragged_rows_need_one_length():
    rows = RAGGED.map(lambda x: x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="same shape"):
        next(iter(rows.batch(2, name="plain")))
    assert next(iter(rows.filter(lambda x: tf.size(x) == 2).batch(1))).tolist() == [[5, 6]]


@pytest.mark.parametrize(
    "rows", [RAGGED, RAGGED.map(lambda x: x), RAGGED.map(tf.strings.as_string)]
)
def test_rows_and_values_of_every_batch_are_tensors(rows):
    for batch in rows.ragged_batch(3):  # the last batch has a single row
        assert [row.numpy().tolist() for row in batch] == batch.to_list()
        assert batch.values.numpy().tolist() == batch.flat_values.numpy().tolist()
        assert repr(batch).startswith("<tf.RaggedTensor [[")


def test_rows_without_values_are_shown():
    assert repr(tf.ragged.constant([[], []], tf.int32)) == "<tf.RaggedTensor [[], []]>"
    assert repr(tf.ragged.constant([[[], []], []], tf.int32)) == "<tf.RaggedTensor [[[], []], []]>"


def test_vectors_of_one_dtype_become_a_column_and_others_do_not():
    vectors = [np.arange(3), np.arange(0), np.arange(2)]
    column = ragged_columns.of_vectors(vectors)
    assert [row.tolist() for row in ragged_columns.elements(column)] == [[0, 1, 2], [], [0, 1]]
    assert ragged_columns.of_vectors([*vectors, np.arange(2.0)]) is None
    assert ragged_columns.of_vectors([*vectors, np.zeros([1, 1], np.int64)]) is None
    assert ragged_columns.of_vectors([np.array([b"a"], object)]) is None
    assert ragged_columns.of_vectors([None, None]) is None
