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


def test_an_object_with_rows_by_number_is_told_to_be_read_by_number():
    class Photos:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return index

    with pytest.raises(ValueError, match=r"range\(len\(rows\)\)\.map\(rows\.__getitem__\)"):
        tf.data.Dataset.from_tensor_slices(Photos())


def test_a_shuffle_by_true_warns_that_it_keeps_the_order():
    dataset = tf.data.Dataset.range(9)
    with pytest.warns(UserWarning, match=r"pass buffer_size=len\(dataset\)") as caught:
        kept = dataset.shuffle(True)
    assert caught[0].filename == __file__
    assert list(kept.as_numpy_iterator()) == list(range(9))
