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


FUNCTIONS = {
    "arithmetic": lambda x: (x + 1) * 2 - x,
    "comparison": lambda x: x > 3,
    "equality": lambda x: x == x[:],
    "slices": lambda x: x[:, :2],
    "a row": lambda x: x[0],
    "a new axis": lambda x: tf.expand_dims(x, 1),
    "concat": lambda x: tf.concat([x, x], axis=1),
    "stack": lambda x: tf.stack([x, x], axis=1),
    "reduce_sum": lambda x: tf.reduce_sum(x, axis=1),
    "reduce_std": lambda x: tf.math.reduce_std(tf.cast(x, tf.float32) + 1, axis=0),
    "reduce_logsumexp": lambda x: tf.reduce_logsumexp(tf.cast(x, tf.float32), axis=1),
    "cumsum": lambda x: tf.cumsum(x, axis=1),
    "bincount": lambda x: tf.math.bincount(x, axis=-1, minlength=3, maxlength=9),
    "matmul": lambda x: tf.matmul(tf.expand_dims(x, -1), np.full((3, 1, 2), 2)),
    "split": lambda x: tf.split(x, [2, 1])[0],
    "reshape": lambda x: tf.reshape(x, [-1]),
    "merge_dims": lambda x: tf.expand_dims(x, -1).merge_dims(1, 2),
    "partition": lambda x: tf.dynamic_partition(x, [0, 1, 0], 2)[0],
    "where": lambda x: tf.where(x > 3, x, 0),
    "one_hot": lambda x: tf.one_hot(x % 3, 3),
    "clip": lambda x: tf.clip_by_value(x, 2, 9),
    "gather": lambda x: tf.gather(x, [1, 0]),
    "tile": lambda x: tf.tile(x, [1, 2]),
    "map_fn": lambda x: tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.int64),
    "map_flat_values": lambda x: tf.ragged.map_flat_values(lambda v: v + 1, x),
    "class": lambda x: tf.constant(isinstance(x, tf.RaggedTensor)),
    "rank": lambda x: tf.constant(len(x.shape)),
    "values": lambda x: x.values,
    "itself": lambda x: x,
    "two uses": lambda x: (x.to_tensor(), x.row_lengths(), x, x + 1),
    "as_string": tf.strings.as_string,
    "sparse": lambda x: tf.sparse.to_dense(x.to_sparse()),
    "cast": lambda x: tf.cast(x, tf.float32),
    "computed": lambda x: tf.reduce_max(tf.cast(x, tf.float32).to_tensor(), axis=0) + 1,
}  # fmt: skip


def listed(value):
    if isinstance(value, tuple):
        return [listed(part) for part in value]
    if isinstance(value, tf.RaggedTensor):
        return value.to_list(), value.dtype, value.row_splits.dtype, value.ragged_rank
    return np.asarray(value).tolist(), value.dtype


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_ragged_elements_gives_the_same_in_a_map(name):
    function = FUNCTIONS[name]
    batches = tf.data.Dataset.from_tensor_slices(NUMBERS[20:38]).batch(3)
    mapped = batches.map(function)
    found = [listed(batch) for batch in mapped]
    assert found == [listed(function(batch)) for batch in batches]
    assert found == [listed(batch) for batch in batches.map(function, vectorize=False)]
