"""A kernel computes images of one shape at once, with the results of one by one."""

from dataclasses import replace

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.core.block import Block
from evenfeed.core.randomness import philox
from evenfeed.core.traced import kernel_stages
from evenfeed.images import hot_loops
from evenfeed.images.colour_spaces import Gamma, Hue, Mix, OfPixels, Saturation, to_hsv
from evenfeed.images.colours import ConvertDtype, FromGrey, ToGrey
from evenfeed.images.geometry import COLUMNS, ROWS, CentralCrop, Crop, CropOrPad, Flip, Pad
from evenfeed.images.levels import Brightness, Contrast, Standardize
from evenfeed.images.random_colours import RandomAdjustment
from evenfeed.images.random_ops import RandomCrop, RandomFlip
from evenfeed.images.resizing import Resize
from evenfeed.images.rotating import Fit, Rotate, RotateBy, Transpose
from evenfeed.runtime.operator import rows_per_block

RNG = np.random.default_rng(3)
BYTES = RNG.integers(0, 256, (17, 17, 13, 3), np.uint8)
IMAGES = {
    "bytes": BYTES,
    "floats": BYTES.astype(np.float32) / np.float32(255),
    "half floats": BYTES.astype(np.float16) / np.float16(255),
}
KERNELS = [
    ConvertDtype(dtypes.float32, saturate=False),
    ConvertDtype(dtypes.uint8, saturate=True),
    Standardize(),
    Brightness(0.3),
    Contrast(1.7),
    ToGrey(),
    Gamma(0.7, 1.2),
    Hue(0.2),
    Saturation(1.5),
    Crop(1, 2, 9, 7),
    Pad(1, 2, 20, 20),
    CentralCrop(0.5),
    CropOrPad(20, 7),
    Flip(COLUMNS),
    Flip(ROWS),
    Rotate(1),
    Rotate(2),
    Transpose(),
    Resize(9, 20, "bilinear", keeps_form=False, antialias=False),
    Resize(9, 20, "nearest", keeps_form=False, antialias=False),
    Resize(9, 20, "lanczos3", keeps_form=True, antialias=True),
    Resize(17, 13, "nearest", keeps_form=False, antialias=False),
    Fit(20, 9, "bilinear", antialias=False),
]
RANDOM = [
    RandomFlip(COLUMNS),
    RandomFlip(ROWS),
    RandomCrop((9, 7, 3)),
    RandomAdjustment(Brightness, -0.5, 0.5, each=Brightness.of_each),
    RandomAdjustment(Contrast, 0.5, 1.5, each=Contrast.of_each),
    RandomAdjustment(Hue, -0.5, 0.5),
]
WORDS = RNG.integers(0, 1 << 32, (17, 2), np.uint32)
SEEDS = RNG.integers(-(1 << 63), 1 << 63, (17, 2), np.int64)


@pytest.fixture(params=["NumPy", "loops"])
def way(request, monkeypatch):
    if request.param == "loops":
        pytest.importorskip("numba")
    monkeypatch.setattr(
        hot_loops.Seen, "values", 1 << 40 if request.param == "loops" else -(1 << 40)
    )


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_images_at_once_are_those_one_by_one(kernel, kind):
    images = IMAGES[kind]
    check(kernel, images)
    check(kernel, list(images))
    check(kernel, [image[::-1, 1:] for image in images])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("kernel", RANDOM, ids=lambda kernel: kernel.kind)
def test_random_images_at_once_are_those_one_by_one(kernel, kind):
    check(kernel, IMAGES[kind], WORDS)
    check(kernel, list(IMAGES[kind]), WORDS)
    fixed = kernel.fixed((7, 9))
    check(fixed, IMAGES[kind])


@pytest.fixture(params=["copied", "views"])
def form(request, monkeypatch):
    monkeypatch.setattr(kernel_stages, "_SMALL", 0 if request.param == "views" else 1 << 14)


@pytest.mark.usefixtures("way", "form")
@pytest.mark.parametrize("count", [2, 17])
@pytest.mark.parametrize("kernel", RANDOM, ids=lambda kernel: kernel.kind)
def test_random_numbers_of_many_images_are_those_of_each(kernel, count):
    images = BYTES[:count]
    check(kernel, images, WORDS[:count])
    check(kernel, list(images), list(WORDS[:count]))
    check(replace(kernel, salt=(3, 1 << 40)), images, WORDS[:count], WORDS[:count, 0])
    stateless = replace(kernel, stateless=True)
    check(stateless, images, SEEDS[:count])
    check(stateless, images, SEEDS[:count, 0], WORDS[:count, 1])
    check(replace(stateless, salt=(5,)), images, SEEDS[:count, 0])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="seed must be two integers, but got 3"
    ):
        stateless.run(images, np.zeros((count, 3), np.int64))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("count", [0, 1, 4, 33])
@pytest.mark.parametrize("stateless", [False, True])
def test_the_random_numbers_of_a_batch_follow_each_other(count, stateless):
    kernel = RandomFlip(COLUMNS, stateless=stateless)
    for seeds in ([SEEDS[0]], [WORDS[0]]):
        wanted = philox.units(kernel.stream(seeds), count, dtypes.float32)
        np.testing.assert_array_equal(kernel.units(seeds, count), wanted, strict=True)


@pytest.mark.usefixtures("way", "form")
@pytest.mark.parametrize("kind", IMAGES)
def test_each_image_turns_by_its_own_number(kind):
    turns = np.arange(-5, 12)
    check(RotateBy(), IMAGES[kind], turns)
    check(RotateBy(), IMAGES[kind][:, :13], turns)
    check(RotateBy(), list(IMAGES[kind][:, :13]), turns)


@pytest.mark.usefixtures("way")
def test_kernels_of_channels_take_batches():
    check(FromGrey(), BYTES[..., :1])
    check(OfPixels("rgb_to_hsv", to_hsv), IMAGES["floats"])
    check(Mix("mix", ((1.0, 2.0, 3.0), (0.5, 0.0, 1.0), (2.0, 1.0, 4.0))), IMAGES["floats"])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("kernel", [Crop(0, 0, 17, 13), Flip(ROWS), CentralCrop(1.0)], ids=str)
def test_results_that_are_views_stay_apart_from_the_source(kernel):
    (found,) = kernel.run(BYTES)
    assert isinstance(found, list)
    images = BYTES.copy()
    for one in tf.data.Dataset.from_tensor_slices(images).map(tf.image.flip_up_down):
        assert not np.shares_memory(np.asarray(one), images)


def test_images_of_several_shapes_are_computed_one_by_one():
    check(Contrast(1.5), [BYTES[0], BYTES[1, 2:], BYTES[2]])


def test_a_block_of_large_elements_has_four():
    def rows(size):
        return rows_per_block(Block((np.empty((1, size), np.uint8),), 1))

    assert rows(1 << 17) == 8
    assert rows(600_000) == 4
    assert rows(1 << 20) == 4
    assert rows(3 << 20) == 1


@pytest.mark.usefixtures("way")
def test_standardization_of_floats_is_exact_to_the_last_bits():
    images = RNG.random((2, 400, 7, 3), np.float32) * np.float32(100) + np.float32(1000)
    exact = images.astype(np.float64)
    exact -= exact.mean((1, 2, 3), keepdims=True)
    exact /= exact.std((1, 2, 3), keepdims=True)
    np.testing.assert_allclose(tf.image.per_image_standardization(images), exact, atol=2e-5)


def check(kernel, images, *columns):
    wanted = [kernel.one(*parts) for parts in zip(images, *columns, strict=True)]
    (found,) = kernel.run(images, *columns)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
