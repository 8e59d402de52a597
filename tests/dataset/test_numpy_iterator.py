"""Tests for `NumpyIterator`, the class of what `as_numpy_iterator` returns."""

import pytest

import evenfeed as tf


def test_as_numpy_iterator_returns_a_numpy_iterator():
    dataset = tf.data.Dataset.from_tensor_slices(["a", "b"])
    iterator = dataset.as_numpy_iterator()
    assert isinstance(iterator, tf.data.NumpyIterator)
    assert not isinstance(iter(dataset), tf.data.NumpyIterator)
    assert list(iterator) == list(tf.data.NumpyIterator(dataset)) == [b"a", b"b"]


def test_a_numpy_iterator_takes_a_dataset_only():
    with pytest.raises(TypeError, match="Expected a Dataset, but got 3"):
        tf.data.NumpyIterator(3)
