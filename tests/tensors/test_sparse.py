"""Functions of sparse tensors: what TensorFlow cannot be asked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf

ROWS = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [2.0, 3.0, 4.0], [2, 3])


def test_a_product_is_compiled_and_has_a_gradient_for_the_dense_matrix():
    def loss(dense):
        return tf.reduce_sum(tf.sparse.sparse_dense_matmul(ROWS, dense))

    found = tf.function(jax.grad(loss))(jnp.ones((3, 2)))
    assert found.tolist() == [[3, 3], [2, 2], [4, 4]]


def test_a_sum_with_a_traced_tensor_is_compiled():
    found = jax.jit(lambda x: tf.sparse.add(ROWS, x))(jnp.ones((2, 3)))
    assert found.tolist() == [[1, 3, 1], [4, 1, 5]]


def test_jax_arrays_become_sparse():
    assert tf.sparse.from_dense(jnp.array([0.0, 5.0])).indices.tolist() == [[1]]


def test_the_functions_agree_with_dense_mathematics():
    random = np.random.default_rng(0)
    dense = random.integers(-3, 4, (4, 5, 6)) * random.integers(0, 2, (4, 5, 6))
    sparse = tf.sparse.from_dense(dense)
    back = tf.sparse.to_dense
    np.testing.assert_array_equal(back(sparse), dense)
    np.testing.assert_array_equal(
        back(tf.sparse.transpose(sparse, [2, 0, 1])), dense.transpose(2, 0, 1)
    )
    np.testing.assert_array_equal(back(tf.sparse.reshape(sparse, [6, -1])), dense.reshape(6, -1))
    np.testing.assert_array_equal(
        back(tf.sparse.slice(sparse, [1, 0, 2], [2, 9, 3])), dense[1:3, :, 2:5]
    )
    np.testing.assert_array_equal(tf.sparse.reduce_sum(sparse, [0, 2]), dense.sum((0, 2)))
    np.testing.assert_array_equal(back(tf.sparse.add(sparse, sparse)), dense * 2)
    parts = tf.sparse.split(sparse, 4, 1)
    np.testing.assert_array_equal(back(tf.sparse.concat(1, parts)), dense)
    for name in ("maximum", "minimum"):
        found = getattr(tf.sparse, name)(sparse, sparse * 2)
        np.testing.assert_array_equal(back(found), getattr(np, name)(dense, dense * 2))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: tf.sparse.reorder([1]), TypeError, r"reorder needs a SparseTensor, but got list"),
        (
            lambda: tf.sparse.sparse_dense_matmul(ROWS, [[1.0]]),
            tf.errors.InvalidArgumentError,
            r"matrix of 2 x 3 cannot be multiplied with float32\[1, 1\]",
        ),
        (
            lambda: tf.sparse.to_dense(tf.SparseTensor([[7]], [1], [3])),
            tf.errors.InvalidArgumentError,
            r"The index \[7\] is outside of the shape \(3,\)",
        ),
        (
            lambda: tf.sparse.to_dense(tf.SparseTensor([[1], [0]], [1, 2], [3])),
            tf.errors.InvalidArgumentError,
            "sparse.reorder",
        ),
        (
            lambda: tf.sparse.cross([tf.constant([["a"]]), tf.constant([["a"], ["b"]])]),
            tf.errors.InvalidArgumentError,
            r"same number of rows, but have \[1, 2\]",
        ),
    ],
)
def test_an_error_says_what_is_wrong(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
