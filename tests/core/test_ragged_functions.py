"""Errors of functions on ragged tensors, and what the oracle cannot ask."""

import numpy as np
import pytest

import evenfeed as tf

ROWS = tf.ragged.constant([[1, 2, 3], [], [4, 5]])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tf.reduce_sum(ROWS, axis=2), ValueError, "axis=2 out of bounds"),
        (
            lambda: tf.concat([ROWS, [[1], [2]]], 1),
            tf.errors.InvalidArgumentError,
            r"\[2, 3\] rows",
        ),
        (lambda: tf.concat([ROWS, [[1.0]]], 0), ValueError, "one dtype and rank"),
        (lambda: tf.squeeze(ROWS, 0), tf.errors.InvalidArgumentError, "not squeezable"),
        (lambda: tf.squeeze(ROWS), ValueError, "must have an axis"),
        (lambda: tf.tile(ROWS, [1]), tf.errors.InvalidArgumentError, "one count for each of 2"),
        (lambda: tf.gather(ROWS, [3]), tf.errors.InvalidArgumentError, "Index 3 is out of range"),
        (lambda: tf.gather(ROWS, [0], axis=1), tf.errors.UnimplementedError, "batch_dims=1"),
        (lambda: tf.gather_nd(ROWS, [[1, 0]]), tf.errors.InvalidArgumentError, "Index 0 is out"),
        (lambda: tf.where(ROWS > 1, ROWS, [1, 2]), tf.errors.InvalidArgumentError, "broadcast"),
        (lambda: tf.map_fn(tf.reduce_sum, ROWS), tf.errors.InvalidArgumentError, "fn_output_sig"),
        (lambda: tf.nn.softmax(tf.cast(ROWS, tf.float32), axis=0), ValueError, "innermost"),
        (lambda: tf.strings.ngrams(ROWS, 2), tf.errors.InvalidArgumentError, "takes text"),
        (lambda: tf.strings.ngrams(["a"], 0), ValueError, "greater than 0"),
        (lambda: tf.strings.ngrams(["a"], 1, pad_values=("a",)), ValueError, "one text or two"),
        (lambda: tf.ragged.cross([ROWS, [[1]]]), ValueError, "as many rows"),
        (lambda: tf.ragged.cross([[1.5]]), ValueError, "matrices of texts or integers"),
        (lambda: tf.ragged.cross([tf.expand_dims(ROWS, 0)]), ValueError, "must be matrices"),
        (lambda: ROWS.merge_dims(1, 2), ValueError, "axis=2 out of bounds"),
        (lambda: tf.matmul(ROWS, ROWS), tf.errors.InvalidArgumentError, "innermost dimension"),
        (lambda: tf.matmul(ROWS[:1], ROWS[:1]), tf.errors.InvalidArgumentError, r"\[1, 3\] and"),
        (lambda: tf.matmul(ROWS, [[[1]]]), ValueError, "of one rank"),
    ],
)
def test_wrong_arguments_of_ragged_functions_raise(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_ragged_functions_work_on_the_batches_of_a_dataset():
    batches = tf.data.Dataset.from_tensor_slices(ROWS).batch(2)
    assert [x.tolist() for x in batches.map(lambda x: tf.reduce_sum(x, axis=1))] == [[6, 0], [9]]
    both = batches.map(lambda x: tf.concat([x, x], axis=1))
    assert [x.to_list() for x in both] == [[[1, 2, 3, 1, 2, 3], []], [[4, 5, 4, 5]]]


def test_ragged_functions_work_on_what_split_returns_inside_map():
    lines = tf.data.Dataset.from_tensor_slices(["a b", "c"]).batch(2)
    joined = lines.map(lambda x: tf.strings.reduce_join(tf.strings.split(x), axis=-1))
    assert next(iter(joined)).tolist() == [b"ab", b"c"]
    pairs = lines.map(lambda x: tf.strings.ngrams(tf.strings.split(x), 2))
    assert next(iter(pairs)).to_list() == [[b"a b"], []]
    sizes = lines.map(lambda x: tf.reduce_max(tf.strings.length(tf.strings.split(x)), axis=1))
    assert next(iter(sizes)).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float32, np.float64])
def test_reductions_agree_with_numpy_row_by_row(dtype):
    random = np.random.default_rng(0)
    rows = [random.integers(-5, 5, size).astype(dtype) for size in random.integers(1, 9, 50)]
    ragged = tf.RaggedTensor.from_row_lengths(np.concatenate(rows), list(map(len, rows)))
    for name, function in (("sum", np.sum), ("max", np.max), ("min", np.min)):
        found = getattr(tf, f"reduce_{name}")(ragged, axis=1)
        assert found.dtype == dtype
        assert found.tolist() == [function(row) for row in rows]


def test_a_mask_of_nested_rows_picks_the_same_values_as_a_loop():
    rng = np.random.default_rng(7)
    for _ in range(50):
        rows = [
            [rng.integers(-3, 4, rng.integers(4)).tolist() for _ in range(rng.integers(4))]
            for _ in range(rng.integers(4))
        ]
        nested = tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=2)
        expected = [[[value for value in row if value > 0] for row in part] for part in rows]
        assert tf.ragged.boolean_mask(nested, nested > 0).to_list() == expected
