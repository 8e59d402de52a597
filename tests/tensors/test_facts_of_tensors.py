"""What a tensor says of itself: its shape and device, and what to write instead of members of a graph."""

import jax
import numpy as np
import pytest

import evenfeed as tf

TENSORS = {
    "device": tf.constant([[1.0, 2.0]]),
    "host": next(iter(tf.data.Dataset.from_tensors(np.ones((1, 2), np.int64)))),
    "text": tf.constant([["a", "b"]]),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_a_tensor_has_tensorflow_s_facts(kind):
    tensor = TENSORS[kind]
    assert tensor.get_shape().as_list() == [1, 2]
    assert tensor.ndim == 2
    assert "cpu" in str(tensor.device).lower()
    assert tensor.numpy().shape == (1, 2)


@pytest.mark.parametrize("tensor", [*TENSORS.values(), tf.constant("a")])
def test_a_reference_to_a_tensor_is_a_key(tensor):
    assert {tensor.ref(): "found"}[tensor.ref()] == "found"
    assert tensor.ref() != tf.constant([[1.0, 2.0]]).ref()
    assert tensor.ref().deref() is tensor


def test_a_reference_to_a_traced_tensor_is_a_key():
    assert tf.function(lambda x: {x.ref(): x * 2}[x.ref()])(tf.constant(2.0)) == 4.0


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize(
    ("name", "fix"), [("op", "the tensor itself"), ("graph", "leave it out"), ("eval", "x.numpy()")]
)
def test_a_member_of_a_graph_says_what_to_write(kind, name, fix):
    with pytest.raises(AttributeError, match=rf"(?s)has no '{name}'.*{fix}"):
        getattr(TENSORS[kind], name)
    assert not hasattr(TENSORS[kind], name)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.int8, tf.uint16])
def test_what_the_page_says_of_dtypes_holds(dtype):
    floats = jax.numpy.issubdtype(dtype, jax.numpy.floating)
    assert floats == (dtype in (tf.float32, tf.bfloat16))
    assert jax.numpy.issubdtype(dtype, jax.numpy.integer) != floats
    limits = jax.numpy.finfo(dtype) if floats else jax.numpy.iinfo(dtype)
    assert limits.max > limits.min
    assert (dtype.name, dtype.itemsize) == (
        np.zeros(1, dtype).dtype.name,
        np.zeros(1, dtype).itemsize,
    )
