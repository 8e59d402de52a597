import pytest

import evenfeed as tf


def test_a_sparse_tensor_becomes_dense():
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [1.5, 2.5], [3, 2])
    assert sparse.dtype == tf.float32
    assert tf.sparse.to_dense(sparse).tolist() == [[0.0, 1.5], [0.0, 0.0], [2.5, 0.0]]
    assert tf.sparse.to_dense(sparse, default_value=9).tolist()[1] == [9.0, 9.0]
    assert tf.sparse.SparseTensor is tf.SparseTensor


def test_text_is_filled_with_no_bytes():
    sparse = tf.SparseTensor([[1]], ["b"], [2])
    assert tf.sparse.to_dense(sparse).tolist() == [b"", b"b"]


def test_what_is_not_sparse_is_refused():
    with pytest.raises(TypeError, match="to_dense needs a SparseTensor, but got list"):
        tf.sparse.to_dense([1])
