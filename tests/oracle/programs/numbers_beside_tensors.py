"""Lists of Python numbers and tensors, in the elements of datasets and in functions that run per element."""

# pyright: basic

import numpy as np

DTYPES = ("int64", "int16", "uint8", "float64", "float16", "bfloat16")


def _tensor(tf, value, dtype):
    return next(iter(tf.data.Dataset.from_tensors(tf.cast(tf.constant(value), dtype))))


def _lists(one, several):
    return {
        "number first": [1, one],
        "tensor first": [one, 1],
        "nested": [[1], [one]],
        "rows": [[1, 2], several],
        "rows, tensor first": [several, [1, 2]],
        "numpy": [np.int64(3), one],
    }


def in_datasets(tf, ask):
    answers = {}
    for dtype in DTYPES:
        one, several = _tensor(tf, 5, dtype), _tensor(tf, [5, 6], dtype)
        for label, values in _lists(one, several).items():
            answers[f"{dtype} {label}"] = list(tf.data.Dataset.from_tensor_slices(values))
        answers[f"{dtype} whole"] = list(tf.data.Dataset.from_tensors([[1, 2], several]))
    return answers


def in_functions(tf, ask):
    """The function computes with Python code, so it is not traced."""

    def unchanged(x):
        return tf.numpy_function(lambda value: value, [x], x.dtype)

    answers = {}
    for dtype in DTYPES:
        numbers = tf.data.Dataset.range(2).map(lambda x, d=dtype: tf.cast(x, d)).map(unchanged)
        answers[f"{dtype} convert_to_tensor"] = list(
            numbers.map(lambda x: tf.convert_to_tensor([1, unchanged(x)]))
        )
        answers[f"{dtype} nested"] = list(
            numbers.map(lambda x: tf.convert_to_tensor([[1, 2], [unchanged(x), 3]]))
        )
    return answers


def beside_ragged(tf, ask):
    rows = tf.ragged.constant([[1], [2, 3]], tf.int64)
    both = tf.data.Dataset.zip((tf.data.Dataset.from_tensors(rows), tf.data.Dataset.range(7, 8)))
    return {
        "concat": list(both.map(lambda r, x: tf.concat([r, [[x]]], 0))),
        "with a number": list(both.map(lambda r, x: tf.concat([r, [[x, 1]]], 0))),
    }
