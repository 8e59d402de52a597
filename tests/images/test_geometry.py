import numpy as np
import pytest
from tests.images.pictures import pixels

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
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
