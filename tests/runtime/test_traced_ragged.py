"""Methods of ragged tensors inside `map` run on whole columns, and give what they give one by one."""

import numpy as np
import pytest

import evenfeed as tf

DRAWN = np.random.default_rng(0)
LENGTHS = DRAWN.integers(0, 7, 600)
LENGTHS[5:12] = 0
NUMBERS = tf.RaggedTensor.from_row_lengths(np.arange(LENGTHS.sum()), LENGTHS)
LINES = [" ".join("ab" * (n % 3) + str(n) for n in range(count)) for count in LENGTHS]

METHODS = {
    "to_tensor": lambda rows: rows.to_tensor(),
    "default": lambda rows: rows.to_tensor(-1 if rows.dtype == tf.int64 else "none"),
    "shape": lambda rows: rows.to_tensor(shape=[None, 4]),
    "row_lengths": lambda rows: rows.row_lengths(),
}


def same(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 3, 50, 600])
def test_columns_of_rows_give_what_each_element_gives(method, size):
    function = METHODS[method]
    batches = tf.data.Dataset.from_tensor_slices(NUMBERS).batch(size)
    mapped = batches.map(function)
    assert "vectorised" in mapped.explain()
    same(mapped, map(function, batches))
    assert all(mapped.element_spec.is_compatible_with(batch) for batch in mapped)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 3, 300])
def test_split_texts_become_dense_in_columns(method, size):
    def words(line):
        return METHODS[method](tf.strings.split(line))

    batches = tf.data.Dataset.from_tensor_slices(LINES).batch(size)
    mapped = batches.map(words)
    assert "vectorised" in mapped.explain()
    same(mapped, map(words, batches))


def test_one_long_row_does_not_widen_all_elements():
    rows = tf.ragged.constant([[1]] * 99 + [list(range(1000))])
    found = list(tf.data.Dataset.from_tensor_slices(rows).batch(2).map(lambda x: x.to_tensor()))
    assert [batch.shape for batch in found] == [(2, 1)] * 49 + [(2, 1000)]


def test_rows_with_inner_axes_become_dense():
    rows = tf.RaggedTensor.from_row_lengths(np.arange(60.0).reshape(30, 2), [3, 0, 7, 20])
    batches = tf.data.Dataset.from_tensor_slices(rows).batch(2)
    same(batches.map(lambda x: x.to_tensor()), [x.to_tensor() for x in batches])


def test_a_default_that_depends_on_the_element_runs_per_element():
    data = tf.data.Dataset.from_tensor_slices((NUMBERS[:6], [5, 6, 7, 8, 9, 10])).batch(3)
    found = list(data.map(lambda rows, fill: rows.to_tensor(tf.cast(fill[0], tf.int64))))
    same(found, [rows.to_tensor(int(fill[0])) for rows, fill in data])


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.complex128, np.bool_])
def test_rows_of_all_sizes_are_gathered_and_filled(dtype):
    values = DRAWN.integers(0, 2, LENGTHS.sum()).astype(dtype)
    rows = tf.RaggedTensor.from_row_lengths(values, LENGTHS)
    order = DRAWN.permutation(len(LENGTHS))
    expected = [rows[int(row)].tolist() for row in order]
    found = rows.rows(order)
    assert found.dtype == dtype
    assert found.to_list() == expected
    dense = found.to_tensor()
    assert dense.dtype == dtype
    assert [row[:n].tolist() for row, n in zip(dense, LENGTHS[order], strict=True)] == expected
    assert not any(row[n:].any() for row, n in zip(dense, LENGTHS[order], strict=True))
