import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.images.pictures import jpeg, pixels

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import plan_of
from evenfeed.images.geometry import COLUMNS, ROWS, flipped


@pytest.mark.parametrize("flip", [tf.image.flip_left_right, tf.image.flip_up_down])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 4, 3), (2, 5, 4, 3), (0, 4, 3), (3, 4, 0)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, bool])
def test_flipping_twice_restores_the_image(flip, shape, dtype):
    image = (np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype)
    assert flip(image).dtype == dtype
    np.testing.assert_array_equal(flip(flip(image)), image)


@pytest.mark.parametrize(("axis", "along"), [(COLUMNS, -2), (ROWS, -3)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_one_axis_goes_backwards(axis, along, channels):
    whole = pixels(9, 11, channels)
    for image in (whole, whole[2:7, 3:9], whole[::2, ::-1]):
        np.testing.assert_array_equal(flipped(image, axis), np.flip(image, along))


def test_an_image_has_three_axes_or_four():
    with pytest.raises(InvalidArgumentError, match="3 or 4 dimensions"):
        tf.image.flip_left_right(np.zeros([4, 4]))


IMAGE = pixels(7, 9)
BATCH = np.stack([IMAGE, IMAGE[::-1]])
lengths = st.integers(1, 12)


@given(lengths, lengths)
def test_the_centre_stays_whether_cropped_or_padded(height, width):
    found = tf.image.resize_with_crop_or_pad(IMAGE, height, width)
    assert found.shape == (height, width, 3)
    back = tf.image.resize_with_crop_or_pad(found, 7, 9)
    kept = back[back.any(axis=-1)]
    np.testing.assert_array_equal(kept, IMAGE[back.any(axis=-1)])
    assert len(kept) == min(height, 7) * min(width, 9)


@given(st.integers(0, 3), st.integers(0, 4), lengths, lengths)
def test_cropping_undoes_padding(top, left, more, wider):
    height, width = 7 + top + more, 9 + left + wider
    padded = tf.image.pad_to_bounding_box(IMAGE, top, left, height, width)
    assert padded.shape == (height, width, 3)
    assert int(padded.sum(dtype=np.int64)) == int(IMAGE.sum(dtype=np.int64))
    np.testing.assert_array_equal(tf.image.crop_to_bounding_box(padded, top, left, 7, 9), IMAGE)


@pytest.mark.parametrize(
    "cut",
    [
        lambda image: tf.image.crop_to_bounding_box(image, 1, 2, 3, 4),
        lambda image: tf.image.pad_to_bounding_box(image, 1, 2, 10, 12),
        lambda image: tf.image.central_crop(image, 0.6),
        lambda image: tf.image.resize_with_crop_or_pad(image, 4, 20),
    ],
)
def test_a_batch_is_its_images_and_the_shape_is_known_before(cut):
    np.testing.assert_array_equal(cut(BATCH), [cut(image) for image in BATCH])
    dataset = tf.data.Dataset.from_tensor_slices(BATCH).map(cut)
    assert plan_of(dataset).function.is_vectorised
    assert dataset.element_spec == tf.TensorSpec(cut(IMAGE).shape, tf.uint8)
    np.testing.assert_array_equal(list(dataset), cut(BATCH))


def test_the_shape_of_a_box_is_known_even_if_that_of_the_image_is_not():
    files = tf.data.Dataset.from_tensors(jpeg())

    def middle(content):
        return tf.image.crop_to_bounding_box(tf.io.decode_jpeg(content, channels=3), 1, 2, 3, 4)

    assert files.map(middle).element_spec == tf.TensorSpec([3, 4, 3], tf.uint8)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1])
def test_a_fraction_is_above_0_and_up_to_1(fraction):
    with pytest.raises(InvalidArgumentError, match=r"within \(0, 1\]"):
        tf.image.central_crop(IMAGE, fraction)


def test_a_box_lies_within_the_image():
    with pytest.raises(InvalidArgumentError, match="height must be >= target"):
        tf.image.crop_to_bounding_box(IMAGE, 1, 0, 7, 9)
    with pytest.raises(InvalidArgumentError, match="offset_width must be >= 0"):
        tf.image.crop_to_bounding_box(IMAGE, 0, -1, 1, 1)
    with pytest.raises(InvalidArgumentError, match="do not fit into 7 x 9"):
        tf.image.pad_to_bounding_box(IMAGE, 1, 0, 7, 9)
