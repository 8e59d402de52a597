"""Batches whose lengths differ become rows together, however their memory is laid out."""

import numpy as np
import pytest

from evenfeed.core.block import Block
from evenfeed.runtime.operators.batching import split_together


@pytest.mark.parametrize(
    "batches",
    [
        [np.arange(6)[::2], np.arange(5)],
        [np.arange(6).reshape(2, 3).T, np.arange(4).reshape(2, 2)],
        [np.zeros((2, 0)), np.zeros((3, 0))],
        [np.arange(0), np.arange(0)],
        [np.arange(0), np.arange(2)],
        [np.array([True]), np.array([False, True])],
        [np.array([1, 2], ">i4"), np.array([3], ">i4")],
    ],
)
def test_batches_that_are_split_together_keep_their_rows(batches):
    rows, lengths = split_together(Block((batches,), len(batches)))
    (column,) = rows.columns
    expected = np.concatenate(batches)
    assert (column.dtype, column.shape) == (expected.dtype, expected.shape)
    assert column.tolist() == expected.tolist()
    assert lengths.tolist() == [len(batch) for batch in batches]
    column[:] = 0
    assert np.concatenate(batches).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "batches",
    [
        [np.arange(3), np.arange(3.0)],
        [np.arange(3), np.zeros((3, 1), np.int64)],
        [np.zeros((3, 2)), np.zeros((3, 1))],
        [np.array(3), np.array(4)],
        [np.arange(3), None],
    ],
)
def test_batches_of_rows_that_differ_are_not_split_together(batches):
    assert split_together(Block((batches,), len(batches))) is None
