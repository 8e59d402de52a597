"""Arguments of the wrong type get an error that says what to pass."""

import pytest

import evenfeed as tf


def test_random_access_needs_a_dataset():
    with pytest.raises(TypeError, match=r"Expected a Dataset, but got \[1, 2\]"):
        tf.data.experimental.at([1, 2], 0)


def test_a_table_needs_keys():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0)
    with pytest.raises(ValueError, match="None of type NoneType cannot become a tensor"):
        table.lookup(None)
