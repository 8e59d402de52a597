import io

import numpy as np
import pytest
from PIL import Image
from tests.images.pictures import file_of, pixels

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.images import hot_loops


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [tf.uint8, tf.uint16])
@pytest.mark.parametrize("compression", [-1, 0, 9])
def test_a_png_loses_nothing(channels, dtype, compression):
    image = pixels(5, 6, channels).astype(dtype)
    if dtype == tf.uint16:
        image = image * np.uint16(256) + image[::-1]
    file = tf.io.encode_png(image, compression)
    np.testing.assert_array_equal(tf.io.decode_png(file, dtype=dtype), image)


def test_a_jpeg_is_what_was_asked_for():
    image = pixels(40, 50)
    opened = Image.open(
        io.BytesIO(tf.io.encode_jpeg(image, progressive=True, x_density=72, y_density=90).item())
    )
    assert (opened.format, opened.mode, opened.size) == ("JPEG", "RGB", (50, 40))
    assert opened.info["progressive"]
    assert opened.info["dpi"] == (72, 90)
    grey = tf.io.encode_jpeg(image[..., :1], "grayscale")
    assert tf.io.extract_jpeg_shape(grey).tolist() == [40, 50, 1]
    low, high = (len(tf.io.encode_jpeg(image, quality=q).item()) for q in (10, 95))
    assert low < high


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("quality", [30, 95])
def test_a_jpeg_has_the_bytes_that_pillow_writes_for_rgb(monkeypatch, compiled, channels, quality):
    if compiled:
        pytest.importorskip("numba")
    monkeypatch.setattr(hot_loops.Seen, "values", 1 << 40 if compiled else 0)
    image = pixels(37, 51, channels)
    for one in (image, image[::2, ::-1], image[:1, :1]):
        file = tf.io.encode_jpeg(one, quality=quality, x_density=72, y_density=72).item()
        plain = np.ascontiguousarray(one[..., 0] if channels == 1 else one)
        assert file == file_of("JPEG", plain, quality=quality, subsampling=2, dpi=(72, 72))


def test_an_image_is_encoded_inside_map():
    images = np.stack([pixels(seed=seed) for seed in range(3)])
    files = tf.data.Dataset.from_tensor_slices(images).map(tf.io.encode_png)
    assert files.element_spec == tf.TensorSpec([], tf.string)
    np.testing.assert_array_equal(list(files.map(tf.io.decode_png)), images)


@pytest.mark.parametrize(
    ("image", "how", "said"),
    [
        (np.zeros([4, 4], np.uint8), {}, "must be 3-dimensional"),
        (np.zeros([4, 4, 2], np.uint8), {}, "must be 3-dimensional with"),
        (np.zeros([0, 4, 3], np.uint8), {}, "must be 3-dimensional"),
        (np.full([4, 4, 3], 0.5, np.float32), {}, "must be uint8, but is float32"),
        (np.zeros([4, 4, 3], np.uint8), {"quality": 101}, "quality must be in"),
        (np.zeros([4, 4, 3], np.uint8), {"format": "bgr"}, "format must be"),
    ],
)
def test_what_is_no_image_is_refused(image, how, said):
    with pytest.raises(InvalidArgumentError, match=said):
        tf.io.encode_jpeg(image, **how)


def test_a_compression_that_zlib_does_not_know_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"\[-1,9\]"):
        tf.io.encode_png(pixels(), 10)


def test_png_files_of_a_batch_are_those_of_its_images():
    images = np.random.default_rng(0).integers(0, 255, (2, 3, 4, 5, 3)).astype(np.uint8)
    files = tf.io.encode_png(images)
    assert files.shape == (2, 3)
    assert files[1, 2] == tf.io.encode_png(images[1, 2])
    assert tf.io.encode_png(images[:0]).shape == (0, 3)
    dataset = tf.data.Dataset.from_tensor_slices(images).map(tf.io.encode_png)
    assert dataset.element_spec == tf.TensorSpec([3], tf.string)
    assert [row.tolist() for row in dataset] == files.tolist()


def test_jpeg_files_are_of_single_images():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)\(2, 4, 4, 3\).*unbatch"):
        tf.io.encode_jpeg(np.zeros((2, 4, 4, 3), np.uint8))
