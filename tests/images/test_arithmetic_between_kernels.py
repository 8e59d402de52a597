"""Image functions before, after and between arithmetic: a map runs on whole Blocks, and gives what it gives per element."""

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.data import Dataset

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (10, 12, 14, 3)).astype(np.uint8)
# Pictures of several sizes, whose shapes are unknown while a function is traced.
FILES = [
    tf.io.encode_png(RNG.integers(0, 256, (8 + n, 12, 3)).astype(np.uint8)).numpy()
    for n in range(6)
]
MEAN = np.array([0.4, 0.5, 0.6], np.float32)


def pixels(content):
    return tf.io.decode_png(content, channels=3)


def scaled(image):
    return tf.cast(image, tf.float32) / 255.0


def stretched(image):
    """Compute with JAX alone: no kernel has these functions."""
    return tf.exp(tf.cast(image, tf.float32) / 255.0)


FIXED = {
    "flip after arithmetic": lambda x: tf.image.flip_left_right(scaled(x)),
    "crop after padding": lambda x: tf.image.central_crop(tf.pad(x, [[2, 2], [2, 2], [0, 0]]), 0.5),
    "arithmetic between kernels": lambda x: (
        tf.image.flip_up_down(tf.image.resize(x, [6, 6]) / 255.0 - MEAN) * 2
    ),
    "two kernels of one value": lambda x: (
        (y := scaled(x)),
        tf.image.flip_left_right(y),
        tf.image.flip_up_down(y),
    ),
    "kernels one after the other, with arithmetic after each": lambda x: (
        tf.image.rot90(tf.image.transpose(stretched(x)) + 1.0) - 0.5
    ),
    "squeezed after": lambda x: tf.squeeze(tf.image.rgb_to_grayscale(scaled(x)), -1),
    "text of numbers": lambda x: tf.strings.as_string(tf.reduce_max(x) // 2),
}
VARYING = {
    "scaled": lambda c: scaled(pixels(c)),
    "scaled, then resized": lambda c: tf.image.resize(scaled(pixels(c)), [5, 5]),
    "per channel": lambda c: (scaled(pixels(c)) - MEAN) / tf.constant([0.2, 0.3, 0.4]),
    "from the right": lambda c: 1.0 - 2 * scaled(pixels(c)),
    "clipped": lambda c: tf.clip_by_value(scaled(pixels(c)) * 3.0, 0.5, 2.0),
    "the larger one": lambda c: tf.maximum(scaled(pixels(c)), tf.square(scaled(pixels(c)))),
    "compared": lambda c: tf.cast(scaled(pixels(c)) > 0.5, tf.uint8),
    "a slice": lambda c: pixels(c)[1:5, ::2, :2],
    "half of it": lambda c: pixels(c)[:, tf.shape(pixels(c))[1] // 2 :, :],
    "a channel": lambda c: pixels(c)[..., 0],
    "its shape": lambda c: tf.shape(pixels(c)),
    "reshaped": lambda c: tf.reshape(tf.image.resize_with_crop_or_pad(pixels(c), 4, 6), [24, 3]),
    "flat": lambda c: tf.reshape(pixels(c), [-1]),
    "with a number of the element": lambda c: (
        scaled(pixels(c)) * tf.cast(tf.shape(pixels(c))[0], tf.float32)
    ),
    "negative": lambda c: -tf.abs(scaled(pixels(c))),
}


def read(dataset):
    return [[np.asarray(part) for part in tf.nest.flatten(element)] for element in dataset]


def assert_same(one, two):
    for left, right in zip(one, two, strict=True):
        for a, b in zip(left, right, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            if a.dtype == np.float32:  # XLA divides single elements with an error of one place
                np.testing.assert_allclose(a, b, rtol=3e-7, atol=3e-7)
            else:
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [*FIXED, *VARYING])
def test_whole_blocks_give_what_single_elements_give(name):
    source = Dataset.from_tensor_slices(IMAGES if name in FIXED else FILES)
    function = {**FIXED, **VARYING}[name]
    dataset = source.map(function)
    assert_same(read(dataset), read(source.map(function, vectorize=False)))
    assert "vectorised" in dataset.explain()


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (VARYING["scaled"], [None, None, 3]),
        (VARYING["scaled, then resized"], [5, 5, 3]),
        (VARYING["reshaped"], [24, 3]),
        (VARYING["flat"], [None]),
        (VARYING["a slice"], [None, None, 2]),
        (VARYING["half of it"], [None, None, 3]),
        (lambda c: tf.ensure_shape(pixels(c), [None, 12, 3]), [None, 12, 3]),
    ],
)
def test_the_spec_has_the_lengths_that_every_element_has(function, shape):
    spec = Dataset.from_tensor_slices(FILES).map(function).element_spec
    assert spec.shape.as_list() == shape


def test_random_functions_come_after_arithmetic():
    def augmented(image):
        image = tf.image.random_flip_left_right(scaled(image), seed=1)
        return tf.image.random_brightness(image * 2.0, 0.2, seed=2)

    dataset = Dataset.from_tensor_slices(IMAGES).map(augmented)
    assert dataset.element_spec.shape == [12, 14, 3]
    assert "vectorised" in dataset.explain()
    found = read(dataset)
    for image, (result,) in zip(IMAGES, found, strict=True):
        plain = image.astype(np.float32) / np.float32(255) * 2
        deltas = [result - plain, result - plain[:, ::-1]]
        assert min(np.ptp(delta) for delta in deltas) < 1e-5


def test_set_shape_adds_what_is_known():
    def known(content):
        image = tf.io.decode_image(content, expand_animations=False)
        image.set_shape([None, 12, 3])
        return image

    dataset = Dataset.from_tensor_slices(FILES).map(known)
    assert dataset.element_spec.shape.as_list() == [None, 12, 3]
    assert "vectorised" in dataset.explain()
    assert [image.shape[0] for image in dataset] == [8, 9, 10, 11, 12, 13]


def test_a_shape_that_an_element_does_not_have_is_an_error_at_that_element():
    dataset = Dataset.from_tensor_slices(FILES).map(lambda c: tf.reshape(pixels(c), [8, 12, 3]))
    assert dataset.element_spec.shape == [8, 12, 3]
    iterator = iter(dataset)
    assert next(iterator).shape == (8, 12, 3)
    with pytest.raises((tf.errors.InvalidArgumentError, TypeError, ValueError)) as caught:
        next(iterator)
    assert any("element 1" in note for note in caught.value.__notes__)


def test_a_variable_that_is_read_before_a_kernel_keeps_its_current_value():
    factor = tf.Variable(1.0)
    source = Dataset.from_tensor_slices(IMAGES[:2])
    dataset = source.map(lambda x: tf.image.flip_left_right(scaled(x) * factor))
    first = read(dataset)
    factor.assign(3.0)
    np.testing.assert_allclose(read(dataset)[0][0], first[0][0] * 3, rtol=1e-6)


def test_an_index_outside_of_a_value_before_a_kernel_is_an_error_at_its_element():
    source = Dataset.from_tensor_slices((IMAGES, np.arange(10)))
    dataset = source.map(lambda x, n: tf.image.flip_left_right(tf.gather(scaled(x), [n, 3]) + 0.0))
    assert len([*dataset.take(10)]) == 10
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(source.map(lambda x, n: tf.image.flip_left_right(tf.gather(scaled(x), [n + 4]))))
    assert any("element 8" in note for note in caught.value.__notes__)
