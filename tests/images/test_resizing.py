import numpy as np
import pytest
from tests.images.pictures import pixels

import evenfeed as tf
from evenfeed.images.resize_weights import band, middles, weights

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
def test_weighted_sums_equal_the_matrix_product(method, dtype):
    image = pixels(23, 31).astype(dtype)
    before = image.tobytes()
    added = tf.image.resize(image, [40, 9], method, antialias=True)
    assert added.dtype == np.float32
    rows, columns = (weights(method, *n, antialias=True) for n in ((23, 40), (31, 9)))
    multiplied = np.einsum("oh,hwc,pw->opc", rows, image.astype(np.float32), columns)
    np.testing.assert_allclose(added, multiplied, rtol=1e-4, atol=1e-3)
    assert image.tobytes() == before


WAYS = ["area", "bicubic", "bilinear", "gaussian", "lanczos3", "lanczos5", "mitchellcubic"]


@pytest.mark.parametrize("method", WAYS)
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 9), (9, 1), (7, 3), (3, 7), (8, 8), (100, 33)])
def test_weights_sum_to_one_and_are_symmetric(method, antialias, sizes):
    found = weights(method, *sizes, antialias=antialias)
    assert found.dtype == np.float32
    assert found.shape == (sizes[1], sizes[0])
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found, found[::-1, ::-1], atol=2e-4)


@pytest.mark.parametrize("method", ["area", "bicubic", "bilinear", "lanczos3", "lanczos5"])
def test_the_same_size_keeps_pixels(method):
    np.testing.assert_allclose(weights(method, 6, 6, antialias=True), np.eye(6), atol=1e-6)


def test_area_weights_are_overlaps():
    found = weights("area", 3, 2, antialias=False)
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3]], rtol=1e-6)


def test_only_near_pixels_count():
    spread = np.abs(middles(50)[None, :] - middles(50)[:, None])
    for method, reach in (("bilinear", 1), ("bicubic", 2), ("lanczos3", 3), ("lanczos5", 5)):
        found = weights(method, 50, 50, antialias=True)
        assert np.abs(found[spread >= reach]).max() < 1e-6


@pytest.mark.parametrize("method", WAYS)
@pytest.mark.parametrize("sizes", [(1, 1), (1, 9), (9, 1), (7, 3), (3, 7), (100, 33)])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_band_has_all_non_zero_weights(method, sizes, channels):
    whole, found = (
        weights(method, *sizes, antialias=True),
        band(method, *sizes, channels, antialias=True),
    )
    row = np.random.default_rng(0).random((sizes[0], channels)).astype(np.float32)
    taken = (row.ravel()[found.places] * found.weights).sum(axis=0).reshape(-1, channels)
    np.testing.assert_allclose(taken, whole @ row, rtol=1e-5, atol=1e-6)
    assert found.places.min() >= 0
    assert found.places.max() < sizes[0] * channels


@pytest.mark.parametrize("method", ["nearest", "bilinear", "area", "lanczos3"])
def test_a_side_that_is_rounded_to_0_is_an_error(method):
    image = np.ones((3, 100, 3), np.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive, but got 0 x 1"):
        tf.image.resize(image, [1, 1], method, preserve_aspect_ratio=True)
