"""tf.ragged and tf.RaggedTensor."""

import numpy as np


def built(tf, ask):
    """Every way to build a ragged tensor."""
    r, values = tf.RaggedTensor, [3, 1, 4, 1]
    constant = tf.ragged.constant
    lists = {
        "two axes": [[1, 2, 3], [], [4]],
        "three axes": [[[1], [2, 3]], []],
        "nothing": [],
        "one empty row": [[]],
        "text": [["a"], [], ["b", "c"]],
        "floats": [[1.5], [2]],
        "a vector": [1, 2],
        "a scalar": 5,
        "mixed depth": [1, [2]],
        "mixed kinds": [[1, "a"]],
        "tuples": ((1, 2), (3,)),
        "arrays": [np.array([1, 2]), np.array([3])],
    }
    dense = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    return {f"constant, {label}": ask(constant, value) for label, value in lists.items()} | {
        "inner_shape": ask(lambda: constant([[[1, 2], [3, 4]], []], inner_shape=(2,))),
        "ragged_rank": ask(lambda: constant([[[1, 2], [3, 4]], []], ragged_rank=1)),
        "dtype": ask(lambda: constant([[1], [2, 3]], dtype=tf.float32)),
        "int32 splits": ask(lambda: constant([[1], [2, 3]], row_splits_dtype=tf.int32)),
        "splits": ask(lambda: r.from_row_splits(values, [0, 2, 2, 4])),
        "splits that end early": ask(lambda: r.from_row_splits(values, [0, 2])),
        "splits that start late": ask(lambda: r.from_row_splits(values, [1, 4])),
        "splits that decrease": ask(lambda: r.from_row_splits(values, [0, 3, 2, 4])),
        "lengths": ask(lambda: r.from_row_lengths(values, [3, 0, 1])),
        "too many lengths": ask(lambda: r.from_row_lengths(values, [3, 2])),
        "starts": ask(lambda: r.from_row_starts(values, [0, 3])),
        "limits": ask(lambda: r.from_row_limits(values, [3, 4])),
        "rowids": ask(lambda: r.from_value_rowids(values, [0, 0, 2, 2])),
        "rowids and rows": ask(lambda: r.from_value_rowids(values, [0, 0, 2, 2], nrows=5)),
        "rowids that decrease": ask(lambda: r.from_value_rowids(values, [0, 2, 1, 3])),
        "uniform": ask(lambda: r.from_uniform_row_length(values, 2)),
        "uniform that does not fit": ask(lambda: r.from_uniform_row_length(values, 3)),
        "nested splits": ask(lambda: r.from_nested_row_splits(values, [[0, 2], [0, 1, 4]])),
        "nested lengths": ask(lambda: r.from_nested_row_lengths(values, [[2], [1, 3]])),
        "a tensor": ask(lambda: r.from_tensor([[1, 2], [3, 4]])),
        "padding": ask(lambda: r.from_tensor([[1, 0, 2, 0], [0, 0, 0, 0]], padding=0)),
        "lengths of a tensor": ask(lambda: r.from_tensor([[1, 2], [3, 4]], lengths=[1, 2])),
        "rank 2": ask(lambda: r.from_tensor(dense, ragged_rank=2)),
        "range": ask(lambda: tf.ragged.range([3, 0, 2])),
        "range from": ask(lambda: tf.ragged.range([0, 5], [3, 9], [1, 2])),
        "stack": ask(lambda: tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])])),
        "mask": ask(lambda: tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False]] * 2)),
        "mask of three axes": ask(
            lambda: tf.ragged.boolean_mask(dense, [[[True, False], [True, True]]] * 2)
        ),
        "segment ids": ask(lambda: tf.ragged.row_splits_to_segment_ids([0, 2, 3])),
        "row splits": ask(lambda: tf.ragged.segment_ids_to_row_splits([0, 0, 2])),
    }


def asked(tf, ask):
    """Every property and method, of tensors with one and two ragged axes."""
    tensors = {
        "rows": tf.ragged.constant([[1, 2, 3], [], [4]]),
        "rows of rows": tf.ragged.constant([[[1], [2, 3]], [], [[4, 5, 6]]]),
        "rows of vectors": tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1),
        "uniform": tf.RaggedTensor.from_uniform_row_length(tf.ragged.constant([[1], [2, 3]]), 1),
        "text": tf.ragged.constant([["a", "b"], ["c"]]),
    }
    questions = {
        "shape": lambda x: x.shape,
        "rank": lambda x: x.ragged_rank,
        "values": lambda x: x.values,
        "flat_values": lambda x: x.flat_values,
        "nested_row_splits": lambda x: x.nested_row_splits,
        "row_lengths": lambda x: x.row_lengths(),
        "row_lengths inside": lambda x: x.row_lengths(axis=2),
        "nested_row_lengths": lambda x: x.nested_row_lengths(),
        "row_starts": lambda x: x.row_starts(),
        "row_limits": lambda x: x.row_limits(),
        "value_rowids": lambda x: x.value_rowids(),
        "nrows": lambda x: x.nrows(),
        "bounding_shape": lambda x: x.bounding_shape(),
        "uniform_row_length": lambda x: x.uniform_row_length,
        "to_list": lambda x: x.to_list(),
        "to_tensor": lambda x: x.to_tensor(),
        "to_tensor, cut": lambda x: x.to_tensor(shape=[2, 1] + [None] * (len(x.shape) - 2)),
        "to_sparse": lambda x: tf.sparse.to_dense(x.to_sparse()),
        "merge_dims": lambda x: x.merge_dims(0, 1),
        "spec": tf.type_spec_from_value,
        "with_flat_values": lambda x: x.with_flat_values(x.flat_values),
        "x[0]": lambda x: x[0],
        "x[-1]": lambda x: x[-1],
        "x[9]": lambda x: x[9],
        "x[1:]": lambda x: x[1:],
        "x[::-1]": lambda x: x[::-1],
        "x[:, :1]": lambda x: x[:, :1],
        "x[:, -1:]": lambda x: x[:, -1:],
        "x[:, ::2]": lambda x: x[:, ::2],
        "x[:, ::-1]": lambda x: x[:, ::-1],
        "x[0, 0]": lambda x: x[0, 0],
        "x[:, 0]": lambda x: x[:, 0],
        "x[..., :1]": lambda x: x[..., :1],
        "x[None]": lambda x: x[None],
        "x + 1": lambda x: x + 1,
        "2 * x": lambda x: 2 * x,
        "x / 2": lambda x: x / 2,
        "x - x": lambda x: x - x,
        "x + column": lambda x: x + tf.constant([[1], [2], [3]]),
        "x + other rows": lambda x: x + tf.ragged.constant([[1], [2], [3]]),
        "x == x": lambda x: x == x + 0,
        "x > 1": lambda x: x > 1,
        "-x": lambda x: -x,
        "bool(x)": bool,
        "list(x)": list,
    }
    return {
        f"{name}, {label}": ask(question, tensor)
        for label, tensor in tensors.items()
        for name, question in questions.items()
        if (name, label) not in (("x + column", "uniform"), ("x > 1", "text"))
    }


def computed(tf, ask):
    """Functions that compute value by value keep the rows."""
    whole = tf.ragged.constant([[1, 2, 3], [], [4]])
    floats = tf.ragged.constant([[0.5, 1.5], [2.0]])
    return {
        "square": ask(tf.square, whole),
        "cast": ask(tf.cast, whole, tf.float32),
        "exp": ask(tf.exp, floats),
        "sigmoid": ask(tf.sigmoid, floats),
        "add": ask(tf.add, whole, whole),
        "add a number": ask(tf.add, whole, 10),
        "maximum": ask(tf.maximum, 2, whole),
        "multiply by a column": ask(tf.multiply, whole, [[1], [2], [3]]),
        "pow": ask(tf.pow, whole, 2),
        "equal": ask(tf.equal, whole, 2),
        "greater": ask(tf.greater, whole, whole - 1),
        "logical_not": ask(tf.logical_not, whole > 2),
        "other rows": ask(tf.add, whole, tf.ragged.constant([[1], [2], [3]])),
        "in a map": ask(
            lambda: list(tf.data.Dataset.from_tensors(whole).map(lambda x: tf.square(x) + 1))
        ),
    }
