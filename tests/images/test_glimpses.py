"""Windows that are cut out of images on the host."""

import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf

RNG = np.random.default_rng(2)
IMAGES = RNG.random((4, 9, 7, 3), np.float32)
OFFSETS = {
    "zero": np.zeros((4, 2), np.float32),
    "fractions": RNG.uniform(-2, 2, (4, 2)).astype(np.float32),
    "pixels": RNG.integers(-12, 12, (4, 2)).astype(np.float32),
}


@pytest.mark.parametrize("offsets", OFFSETS)
@pytest.mark.parametrize("window", [[4, 4], [20, 3], [1, 1]])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_the_host_cuts_the_windows_that_jax_does(offsets, window, centered, normalized):
    found, wanted = (
        np.asarray(tf.image.extract_glimpse(x, window, y, centered, normalized, "zero"))
        for x, y in (
            (IMAGES, OFFSETS[offsets]),
            (jnp.asarray(IMAGES), jnp.asarray(OFFSETS[offsets])),
        )
    )
    np.testing.assert_array_equal(found, wanted)


def test_offsets_may_be_parts_of_an_element():
    both = tf.data.Dataset.from_tensor_slices((IMAGES, OFFSETS["fractions"]))
    cut = both.batch(2, drop_remainder=True).map(
        lambda x, at: tf.image.extract_glimpse(x, [4, 5], at, noise="zero")
    )
    assert "per element" not in str(cut.explain())
    assert cut.element_spec == tf.TensorSpec([2, 4, 5, 3], tf.float32)
    whole = tf.image.extract_glimpse(IMAGES, [4, 5], OFFSETS["fractions"], noise="zero")
    np.testing.assert_array_equal(np.concatenate(list(cut)), whole)


@pytest.mark.parametrize("images", [IMAGES, jnp.asarray(IMAGES)])
def test_each_image_needs_an_offset(images):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"each of 4 images, but have .*2, 2"):
        tf.image.extract_glimpse(images, [2, 2], np.zeros((2, 2), np.float32), noise="zero")


@pytest.mark.parametrize("images", [IMAGES, jnp.asarray(IMAGES)])
def test_gradients_need_a_batch(images):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"needs \[batch, rows"):
        tf.image.image_gradients(images[0])
