import numpy as np
import pytest

from evenfeed.images.resizing import band, middles, weights

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
