"""Functions that take sparse tensors and keep them sparse, and what makes a sparse tensor."""

import numpy as np
import pytest

import evenfeed as tf


@pytest.mark.parametrize(
    "name",
    ["abs", "negative", "sign", "square", "math.sqrt", "sin", "tanh", "stop_gradient", "nn.tanh"],
)
def test_functions_that_keep_zero_keep_a_sparse_tensor_sparse(name):
    function = tf
    for part in name.split("."):
        function = getattr(function, part)
    dense = np.array([[0.0, 4.0], [0.25, 0.0]], np.float32)
    found = function(tf.sparse.from_dense(dense))
    assert isinstance(found, tf.SparseTensor)
    np.testing.assert_allclose(tf.sparse.to_dense(found), function(dense), rtol=1e-6)


def test_functions_that_do_not_keep_zero_refuse_a_sparse_tensor():
    with pytest.raises(ValueError, match="cannot become a tensor"):
        tf.cos(tf.sparse.from_dense([1.0]))


@pytest.mark.parametrize(
    ("indices", "values", "shape"),
    [
        ([[0, 0]], [1, 2], [2, 2]),
        ([0, 0], [1], [2, 2]),
        ([[0, 0]], [1], [2]),
        ([[0, 0]], [[1]], [2, 2]),
        ([[0, 0]], 1, [2, 2]),
        ([[0, 0]], [1], 2),
    ],
)
def test_the_parts_of_a_sparse_tensor_must_fit(indices, values, shape):
    with pytest.raises(ValueError, match="indices, values and dense_shape must have the shapes"):
        tf.SparseTensor(indices, values, shape)


def test_cast_keeps_a_sparse_tensor_sparse():
    found = tf.cast(tf.sparse.from_dense([[1.5, 0.0], [0.0, -2.5]]), tf.int32)
    assert found.values.tolist() == [1, -2]
    assert tf.sparse.to_dense(found).tolist() == [[1, 0], [0, -2]]
    rows = tf.data.Dataset.from_tensor_slices(found).map(lambda row: tf.cast(row, tf.float32))
    assert [tf.sparse.to_dense(row).tolist() for row in rows] == [[1.0, 0.0], [0.0, -2.0]]
