"""Shapes and dtypes of tensors: what TensorFlow's members give, and what errors say about those that are missing."""

import copy
import pickle

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.names.tensor_facts import explain_missing_member


def element(value):
    return next(iter(tf.data.Dataset.from_tensors(value)))


@pytest.mark.parametrize("value", [np.zeros((3, 1)), np.array([["a"], ["b"], ["c"]], object)])
def test_a_shape_of_the_host_has_the_methods_of_a_tensor_shape(value):
    shape = element(value).shape
    assert shape.concatenate([2]) == tf.TensorShape([3, 1, 2])
    assert shape.merge_with([None, 1]) == tf.TensorShape([3, 1])
    assert shape.is_compatible_with([None, 1])
    assert shape.with_rank(2) == [3, 1]
    with pytest.raises(ValueError, match="must have rank 3"):
        shape.assert_has_rank(3)
    with pytest.raises(AttributeError, match="no_such_member"):
        _ = shape.no_such_member
    assert copy.deepcopy(shape) == pickle.loads(pickle.dumps(shape)) == (3, 1)


@pytest.mark.parametrize(
    ("ask", "note"),
    [
        (lambda x: x * x.shape.as_list()[0], "write x.get_shape().as_list"),
        (lambda x: x * x.shape.rank, "write x.get_shape().rank"),
        (lambda x: x * x.dtype.is_floating, "jax.numpy.issubdtype"),
        (lambda x: x / x.dtype.max, "jax.numpy.finfo(x.dtype).max"),
        (lambda x: x.astype(x.dtype.as_numpy_dtype), "write x.dtype.type"),
        (lambda x: x.numpy(), "evenfeed.py_function"),
    ],
)
def test_a_compiled_function_says_what_to_write(ask, note):
    with pytest.raises(AttributeError) as caught:
        tf.function(ask)(tf.constant([1.0, 2.0]))
    assert note in "".join(caught.value.__notes__)


def test_a_map_says_what_to_write():
    dataset = tf.data.Dataset.from_tensors([1.0])
    with pytest.raises(AttributeError) as caught:
        dataset.map(lambda x: x * x.dtype.is_floating)
    assert any("jax.numpy.issubdtype" in note for note in caught.value.__notes__)


def test_a_map_that_uses_a_tensor_as_one_of_pytorch_says_how_to_make_one():
    def relu(x):  # as PyTorch does
        raise TypeError(
            f"relu(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}"
        )

    for function in (relu, lambda x: x.unsqueeze(0)):
        with pytest.raises((TypeError, AttributeError)) as caught:
            tf.data.Dataset.from_tensors([1.0]).map(function)
        assert any("torch.as_tensor(x.numpy())" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("member", ["to", "cuda", "unsqueeze"])
def test_a_tensor_says_how_to_make_one_of_pytorch(member):
    for value in ([1.0], "text", ["texts"]):
        tensor = element(value)
        assert not hasattr(tensor, member)
        with pytest.raises(AttributeError, match=r"torch\.as_tensor\(x\.numpy\(\)\)"):
            getattr(tensor, member)


def test_other_errors_get_no_note():
    for error in (ValueError("is_floating"), AttributeError("x", name="is_floating", obj=object())):
        explain_missing_member(error)
        assert not getattr(error, "__notes__", [])
