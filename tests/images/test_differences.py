"""`psnr`, `total_variation` and `image_gradients` on the host and with JAX."""

import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.images import hot_loops

RNG = np.random.default_rng(11)
IMAGES = RNG.random((5, 9, 7, 3), np.float32)
FUNCTIONS = {
    "psnr": lambda x: tf.image.psnr(x, x * np.float32(0.9), 1.0),
    "variation": tf.image.total_variation,
    "down": lambda x: tf.image.image_gradients(x)[0],
    "right": lambda x: tf.image.image_gradients(x)[1],
}
OF_IMAGES = ("psnr", "variation")


@pytest.fixture(params=["NumPy", "loops"])
def way(request, monkeypatch):
    if request.param == "loops":
        pytest.importorskip("numba")
    monkeypatch.setattr(
        hot_loops.Seen, "values", 1 << 40 if request.param == "loops" else -(1 << 40)
    )


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [(9, 7), (1, 7), (9, 1), (1, 1)])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_host_finds_what_jax_does(name, size, channels):
    images = IMAGES[:, : size[0], : size[1], :channels]
    for one in (images, images[0]) if name in OF_IMAGES else (images,):
        found, wanted = (np.asarray(FUNCTIONS[name](x)) for x in (one, jnp.asarray(one)))
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_and_numpy_agree_to_the_last_bit(monkeypatch, name):
    pytest.importorskip("numba")
    found = []
    for seen in (-(1 << 40), 1 << 40):
        monkeypatch.setattr(hot_loops.Seen, "values", seen)
        found.append(np.asarray(FUNCTIONS[name](IMAGES)))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("drop_remainder", [True, False])
def test_a_map_computes_batches_of_any_length_as_plain_python_does(name, drop_remainder):
    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(2, drop_remainder=drop_remainder)
    mapped = batches.map(FUNCTIONS[name])
    assert "per element" not in str(mapped.explain())
    shape = (2 if drop_remainder else None, *IMAGES.shape[1:])
    assert mapped.element_spec.shape.as_list() == list(shape[: 1 if name in OF_IMAGES else 4])
    for found, batch in zip(mapped, batches, strict=True):
        np.testing.assert_allclose(found, FUNCTIONS[name](batch), rtol=1e-6)


@pytest.mark.parametrize("name", OF_IMAGES)
def test_a_map_goes_on_with_the_result(name):
    dataset = tf.data.Dataset.from_tensor_slices(IMAGES)
    mapped = dataset.map(lambda x: tf.exp(FUNCTIONS[name](x) / 50) + x[0, 0])
    for found, image in zip(mapped, IMAGES, strict=True):
        wanted = np.exp(np.asarray(FUNCTIONS[name](image)) / 50) + image[0, 0]
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_equal_images_have_an_infinite_ratio_and_images_without_pixels_none():
    assert np.isposinf(tf.image.psnr(IMAGES, IMAGES, 1.0)).all()
    assert np.isnan(tf.image.psnr(IMAGES[:, :0], IMAGES[:, :0], 1.0)).all()
    assert np.asarray(tf.image.total_variation(IMAGES[:, :0])).tolist() == [0] * 5
    assert tf.image.image_gradients(IMAGES[:, :, :0])[1].shape == (5, 9, 0, 3)
