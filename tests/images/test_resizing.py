import numpy as np
import pytest
from tests.images.pictures import pixels

import evenfeed as tf

METHODS = [way for name, way in vars(tf.image.ResizeMethod).items() if name.isupper()]


@pytest.mark.parametrize("size", [(1, 1), (7, 9), (40, 48), (20, 24)])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("method", [way for way in METHODS if way != "nearest"])
def test_a_uniform_image_stays_uniform(size, antialias, method):
    flat = np.full([20, 24, 2], 9, np.uint8)
    found = tf.image.resize(flat, size, method, antialias=antialias)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.full([*size, 2], 9.0), rtol=1e-6)


def test_antialias_keeps_the_mean():
    image = pixels(32, 32)
    found = tf.image.resize(image, [4, 4], antialias=True)
    assert abs(float(found.mean()) - image.mean()) < 3


def test_a_batch_is_its_images():
    batch = np.stack([pixels(seed=1), pixels(seed=2)])
    for how in ({}, {"antialias": True}, {"method": "nearest"}, {"method": "lanczos3"}):
        whole = tf.image.resize(batch, [7, 50], **how)
        np.testing.assert_allclose(
            whole, np.stack([tf.image.resize(one, [7, 50], **how) for one in batch]), rtol=1e-5
        )


def test_an_unknown_method_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"not implemented: cubic(.|\n)*'bicubic'"):
        tf.image.resize(pixels(), [4, 4], method="cubic")


def test_an_image_without_pixels_is_an_error():
    with pytest.raises(ValueError, match="non-zero"):
        tf.image.resize(np.zeros([0, 4, 3]), [2, 2])


@pytest.mark.parametrize("method", [way for way in METHODS if way != "nearest"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.float64, np.uint16])
def test_weighted_sums_equal_the_matrix_product(method, dtype, monkeypatch):
    image = pixels(23, 31).astype(dtype)
    before = image.tobytes()
    added = tf.image.resize(image, [40, 9], method, antialias=True)
    assert added.dtype == np.float32
    monkeypatch.setattr("evenfeed.images.resizing._MOST_PLACES", 0)
    multiplied = tf.image.resize(image, [40, 9], method, antialias=True)
    np.testing.assert_allclose(added, multiplied, rtol=1e-4, atol=1e-3)
    assert image.tobytes() == before
