"""Further functions on ragged tensors: cumulative sums, variances, counts, products of matrices, parts and text of them."""

import numpy as np


def _floats(tf):
    return tf.ragged.constant([[1.5, 2.5], [], [4.0, 1.0, 3.0]])


def _digits(tf):
    return tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6], []])


def _nested(tf):
    return tf.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6]]])


def cumulative_sums(tf, ask):
    """`cumsum` along each axis."""
    floats, nested = _floats(tf), _nested(tf)
    return {
        "rows": ask(lambda: tf.math.cumsum(floats, axis=1)),
        "rows, by a negative axis": ask(lambda: tf.cumsum(floats, axis=-1)),
        "columns": ask(lambda: tf.math.cumsum(floats)),
        "exclusive": ask(lambda: tf.math.cumsum(floats, axis=1, exclusive=True)),
        "reverse": ask(lambda: tf.math.cumsum(floats, axis=1, reverse=True)),
        "both": ask(lambda: tf.math.cumsum(floats, axis=1, exclusive=True, reverse=True)),
        "nested": ask(lambda: tf.math.cumsum(nested, axis=2)),
        "nested, outer rows": ask(lambda: tf.math.cumsum(nested, axis=1)),
    }


def statistics(tf, ask):
    """Variance, standard deviation and logsumexp."""
    floats = _floats(tf)
    full = tf.ragged.constant([[1.5, 2.5], [4.0, 1.0, 3.0]])
    return {
        "variance of rows": ask(lambda: tf.math.reduce_variance(full, axis=1)),
        "variance of all": ask(lambda: tf.math.reduce_variance(floats)),
        "variance of columns": ask(lambda: tf.math.reduce_variance(full, axis=0)),
        "variance of integers": ask(lambda: tf.math.reduce_variance(_digits(tf), axis=1)),
        "std of rows": ask(lambda: tf.math.reduce_std(full, axis=1)),
        "std, keepdims": ask(lambda: tf.math.reduce_std(full, axis=1, keepdims=True)),
        "logsumexp of rows": ask(lambda: tf.reduce_logsumexp(floats, axis=1)),
        "logsumexp, keepdims": ask(lambda: tf.reduce_logsumexp(full, axis=1, keepdims=True)),
        "logsumexp of all": ask(lambda: tf.reduce_logsumexp(floats)),
    }


def counts(tf, ask):
    """`bincount` of all rows and of each."""
    digits = _digits(tf)
    weights = tf.ragged.constant([[1.0, 2.0, 3.0, 4.0], [], [0.5, 0.5, 0.5], [7.0], []])
    return {
        "all": ask(lambda: tf.math.bincount(digits)),
        "each row": ask(lambda: tf.math.bincount(digits, axis=-1)),
        "limits": ask(lambda: tf.math.bincount(digits, axis=-1, minlength=4, maxlength=5)),
        "a long result": ask(lambda: tf.math.bincount(digits, axis=-1, minlength=12)),
        "binary": ask(lambda: tf.math.bincount(digits, axis=-1, binary_output=True)),
        "weights": ask(lambda: tf.math.bincount(digits, weights=weights, axis=-1)),
    }


def products(tf, ask):
    """`matmul` of matrices with different lengths."""
    tall = tf.RaggedTensor.from_row_splits(np.arange(12.0).reshape(6, 2), [0, 2, 6])
    wide = tf.ragged.stack([np.ones((3, 2)), np.ones((3, 1))])
    return {
        "ragged rows by dense": ask(lambda: tf.matmul(tall, np.ones((2, 2, 3)))),
        "ragged by ragged": ask(
            lambda: tf.matmul(tf.ragged.stack([np.ones((2, 3)), np.ones((4, 3))]), wide)
        ),
    }


def parts(tf, ask):
    """Functions that cut, merge and reshape."""
    digits, nested = _digits(tf), _nested(tf)
    inner = tf.RaggedTensor.from_row_splits(np.arange(12.0).reshape(6, 2), [0, 2, 2, 6])
    return {
        "split into five": ask(lambda: tf.split(digits, 5)),
        "split by sizes": ask(lambda: tf.split(digits, [2, 3])),
        "split unevenly": ask(lambda: tf.split(digits, 3)),
        "split inside of rows": ask(lambda: tf.split(digits, 2, axis=1)),
        "partitions": ask(lambda: tf.dynamic_partition(digits, [0, 1, 0, 1, 0], 2)),
        "reshape to a vector": ask(lambda: tf.reshape(digits, [-1])),
        "reshape to a matrix": ask(lambda: tf.reshape(digits, [4, 2])),
        "merge inner axes": ask(lambda: nested.merge_dims(1, 2)),
        "merge all axes": ask(lambda: nested.merge_dims(0, -1)),
        "merge a uniform axis": ask(lambda: inner.merge_dims(1, 2)),
        "bitcast": ask(lambda: tf.bitcast(digits, tf.uint32)),
        "map_fn to rows": ask(
            lambda: tf.map_fn(
                tf.range,
                tf.constant([3, 0, 2]),
                fn_output_signature=tf.RaggedTensorSpec([None], tf.int32),
            )
        ),
    }


def texts(tf, ask):
    """How ragged tensors are shown."""
    digits, nested = _digits(tf), _nested(tf)
    long = tf.ragged.constant([list(range(40)), [1], list(range(50))])
    inner = tf.RaggedTensor.from_row_splits(np.arange(12.0).reshape(6, 2), [0, 2, 2, 6])
    words = tf.ragged.constant([["a", "b\n"], [], ["ü"]])
    empty = tf.ragged.constant([], ragged_rank=1, dtype=tf.int32)
    shown = {
        "digits": digits, "nested": nested, "long": long, "inner": inner, "words": words, "empty": empty,
        "floats": _floats(tf), "bools": digits > 2, "equal rows": tf.ragged.constant([[1, 2], [3, 4]]),
    }  # fmt: skip
    found = {f"repr of {name}": ask(lambda v=value: repr(v)) for name, value in shown.items()}
    found |= {f"str of {name}": ask(lambda v=value: str(v)) for name, value in shown.items()}
    return found
