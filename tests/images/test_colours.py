import numpy as np
import pytest
from tests.images.pictures import pixels

import evenfeed as tf
from evenfeed.core import dtypes


@pytest.mark.parametrize("dtype", [tf.uint16, tf.int32, tf.float16, tf.float32, tf.float64])
def test_converting_there_and_back_keeps_the_image(dtype):
    image = pixels()
    there = tf.image.convert_image_dtype(image, dtype)
    np.testing.assert_array_equal(tf.image.convert_image_dtype(there, tf.uint8), image)


def test_bfloat16_is_a_float():
    found = tf.image.convert_image_dtype(np.array([0, 255], np.uint8), tf.bfloat16)
    assert found.dtype == dtypes.bfloat16
    assert found.astype(np.float32).tolist() == [0.0, 1.0]


def test_each_image_of_a_batch_is_standardised_by_itself():
    batch = np.stack([pixels(seed=1), pixels(seed=2) // 4])
    found = np.asarray(tf.image.per_image_standardization(batch))
    np.testing.assert_allclose(found.mean((1, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(found.std((1, 2, 3)), 1, rtol=1e-5)


def test_the_input_image_is_not_changed():
    image = pixels().astype(np.float32)
    before = image.copy()
    tf.image.per_image_standardization(image)
    tf.image.adjust_contrast(image, 2.0)
    tf.image.adjust_brightness(image, 0.5)
    tf.image.resize(image, [3, 3])
    np.testing.assert_array_equal(image, before)
