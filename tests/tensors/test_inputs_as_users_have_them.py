"""Functions that take numbers as they come: labels of any dtype, grids of any shape, images that are the same."""

import numpy as np
import pytest

import evenfeed as tf


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "bool", "float32"])
def test_labels_of_any_dtype_are_counted(dtype):
    labels = tf.constant(np.array([0, 1, 1, 1]).astype(dtype))
    guesses = tf.constant(np.array([0, 1, 0, 1]).astype(dtype))
    assert tf.math.confusion_matrix(labels, guesses).tolist() == [[1, 0], [1, 2]]
    assert tf.math.bincount(labels).tolist() == [1, 3]


def test_rounded_probabilities_are_classes():
    guesses = tf.round(tf.constant([0.2, 0.7, 0.4]))
    assert tf.math.confusion_matrix([0, 1, 1], guesses).tolist() == [[1, 0], [1, 1]]


def test_nothing_is_counted_as_nothing():
    assert tf.math.confusion_matrix([], []).shape == (0, 0)


def test_a_grid_is_made_of_all_values_of_a_matrix():
    x, y = tf.meshgrid([[1, 2], [3, 4]], 5)
    assert (x.tolist(), y.tolist()) == ([[1, 2, 3, 4]], [[5, 5, 5, 5]])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["plain", "compiled"])
def test_an_image_and_itself_have_no_noise_between_them(dtype, wrap):
    image = tf.constant((np.arange(5 * 6 * 3) * 7 % 256).reshape(5, 6, 3).astype(dtype))
    ratio = wrap(lambda x: tf.image.psnr(x, tf.identity(x), 255))
    assert float(ratio(image)) == np.inf


def test_no_rows_are_mapped_to_no_results():
    nothing = tf.RaggedTensor.from_row_splits(tf.constant([], tf.int32), [0])
    assert tf.map_fn(tf.size, nothing, fn_output_signature=tf.int32).shape == (0,)
    found = tf.map_fn(
        lambda row: row[:2], nothing, fn_output_signature=tf.TensorSpec([2], tf.int32)
    )
    assert found.shape == (0, 2)


@pytest.mark.parametrize("shape", [[0], [2, 0], [0, 3]])
def test_no_texts_have_no_ngrams(shape):
    texts = tf.constant(np.full(shape, "a", object), tf.string)
    assert tf.strings.ngrams(texts, 2).shape[:-1] == tuple(shape[:-1])


def test_the_spec_of_a_ragged_tensor_is_made_of_it():
    rows = tf.ragged.constant([[1, 2], [3]])
    assert tf.RaggedTensorSpec.from_value(rows) == tf.RaggedTensorSpec([2, None], tf.int32)
