"""Image functions for losses and models."""

import jax
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import plan_of

IMAGES = np.random.default_rng(0).uniform(0, 1, (2, 12, 12, 3)).astype(np.float32)
BOX = np.array([[0.1, 0.2, 0.8, 0.9]], np.float32)

LOSSES = {
    "crop_and_resize": lambda x: tf.image.crop_and_resize(x, BOX, [1], [3, 3]),
    "extract_patches": lambda x: tf.image.extract_patches(
        x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"
    ),
    "extract_glimpse": lambda x: tf.image.extract_glimpse(
        x, [3, 3], np.zeros((2, 2)), noise="zero"
    ),
    "image_gradients": lambda x: tf.image.image_gradients(x)[0] ** 2,
    "psnr": lambda x: tf.image.psnr(x, IMAGES[::-1].copy(), 1.0),
    "sobel_edges": lambda x: tf.image.sobel_edges(x) ** 2,
    "ssim": lambda x: tf.image.ssim(x, IMAGES[::-1].copy(), 1.0),
    "ssim_multiscale": lambda x: tf.image.ssim_multiscale(
        x, 1 - IMAGES[::-1], 1.0, power_factors=[0.5, 0.5], filter_size=3
    ),
    "total_variation": tf.image.total_variation,
}


def test_image_functions_have_gradients():
    def losses(x):
        return [tf.reduce_sum(function(x)) for function in LOSSES.values()]

    values = jax.jit(losses)
    gradients = jax.jit(jax.jacrev(losses))(IMAGES)
    for place, (name, gradient) in enumerate(zip(LOSSES, gradients, strict=True)):
        step = 1e-2 * np.sign(gradient).astype(np.float32)
        assert np.abs(gradient).max() > 0, name
        assert values(IMAGES + step)[place] > values(IMAGES - step)[place], name


def test_an_index_that_only_the_run_shows_raises_in_a_map():
    dataset = tf.data.Dataset.from_tensors((IMAGES, BOX, np.array([2])))
    with pytest.raises(InvalidArgumentError):
        list(dataset.map(lambda x, b, i: tf.image.crop_and_resize(x, b, i, [2, 2])))


def test_patches_of_decoded_images_are_cut_on_blocks():
    files = [tf.io.encode_png((image * 255).astype(np.uint8)) for image in IMAGES]

    def patches(content):
        image = tf.image.resize_with_crop_or_pad(tf.io.decode_png(content, channels=3), 8, 8)
        return tf.image.extract_patches(
            image[None], [1, 4, 4, 1], [1, 4, 4, 1], [1, 1, 1, 1], "VALID"
        )[0]

    dataset = tf.data.Dataset.from_tensor_slices(files).map(patches)
    assert plan_of(dataset).function.is_vectorised
    np.testing.assert_array_equal(list(dataset), [patches(file) for file in files])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tf.image.ssim(IMAGES[:, :5], IMAGES[:, :5], 1.0),
            "at least as large as the filter",
        ),
        (lambda: tf.image.crop_and_resize(IMAGES, BOX, [5], [2, 2]), "the index 5"),
        (lambda: tf.image.crop_and_resize(IMAGES, BOX, [0], [2]), "a height and a width"),
        (lambda: tf.image.draw_bounding_boxes(IMAGES, BOX, None), r"boxes\[None\]"),
        (lambda: tf.image.non_max_suppression(BOX, [0.5], 1, iou_threshold=2.0), r"in \[0, 1\]"),
        (
            lambda: tf.image.sample_distorted_bounding_box([4, 4, 3], np.ones((1, 0, 4))),
            "use_image",
        ),
    ],
)
def test_a_wrong_argument_says_what_to_pass(call, message):
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def test_distorted_boxes_in_a_map_differ_by_element_and_repeat_with_a_seed():
    boxes = np.tile(np.array([[[0.1, 0.1, 0.9, 0.9]]], np.float32), (8, 1, 1, 1))

    def crop(sizes, box):
        return tf.image.sample_distorted_bounding_box(sizes, box, seed=3).size

    sizes = np.tile(np.array([200, 300, 3], np.int32), (8, 1))
    dataset = tf.data.Dataset.from_tensor_slices((sizes, boxes)).map(crop)
    assert plan_of(dataset).function.is_vectorised
    found = [size.tolist() for size in dataset]
    assert len({tuple(size) for size in found}) > 4
    again = tf.data.Dataset.from_tensor_slices((sizes, boxes)).map(crop)
    assert [size.tolist() for size in again] == found


def test_distorted_boxes_of_constants_differ_by_element():
    def crop(x):
        return x, tf.image.sample_distorted_bounding_box([200, 300, 3], BOX[None], seed=3).size

    dataset = tf.data.Dataset.range(8).map(crop)
    assert plan_of(dataset).function.is_vectorised
    found = [size.tolist() for _, size in dataset]
    assert len({tuple(size) for size in found}) > 4
    assert [size.tolist() for _, size in tf.data.Dataset.range(8).map(crop)] == found


def test_constant_boxes_are_drawn_in_a_map_without_running_it_element_by_element():
    boxes, colours = np.repeat(BOX[None], 2, axis=0), [[1.0, 0.5, 0.0]]
    batches = tf.data.Dataset.from_tensor_slices(IMAGES).batch(2)

    def draw(x):
        return tf.image.draw_bounding_boxes(x, boxes, colours)

    drawn = batches.map(draw)
    assert plan_of(drawn).function.is_vectorised
    for one, other in zip(batches, drawn, strict=True):
        np.testing.assert_array_equal(other, draw(one))
        assert (other != one).any()
    # Boxes that depend on the element are not constants.
    moved = batches.map(lambda x: tf.image.draw_bounding_boxes(x, boxes * x[0, 0, 0, 0], colours))
    for one, other in zip(batches, moved, strict=True):
        expected = tf.image.draw_bounding_boxes(one, boxes * one[0, 0, 0, 0], colours)
        np.testing.assert_array_equal(other, expected)


def test_a_score_that_equals_the_threshold_in_single_precision_is_dropped():
    scores = np.array([0.3], np.float32)
    assert float(scores[0]) > 0.3
    assert tf.image.non_max_suppression(BOX, scores, 1, score_threshold=0.3).tolist() == []
