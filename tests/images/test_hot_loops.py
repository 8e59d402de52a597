"""Compiled loops and NumPy give the same images, to the last bit."""

import re
import struct
import zlib

import numpy as np
import pytest
from tests.images.pictures import pixels

import evenfeed as tf
from evenfeed.images import hot_loops

RNG = np.random.default_rng(7)
BYTES = RNG.integers(0, 256, (2, 23, 19, 3), np.uint8)
# Greys, two equal colours, and values out of the usual range are special for hues.
BYTES[0, :4] = BYTES[0, :4, :, :1]
BYTES[0, 4:8, :, 1] = BYTES[0, 4:8, :, 2]
FLOATS = BYTES.astype(np.float32) / np.float32(255)
WIDE = (FLOATS * np.float32(9) - np.float32(4)).astype(np.float32)
ODD = np.array([np.nan, np.inf, -np.inf, 1e38, 0.5, -0.25], np.float32).reshape(1, 1, 2, 3)

FUNCTIONS = {
    "brightness": lambda x: tf.image.adjust_brightness(x, 0.3),
    "contrast": lambda x: tf.image.adjust_contrast(x, 1.7),
    "gamma": lambda x: tf.image.adjust_gamma(abs(x), 0.7),
    "hue": lambda x: tf.image.adjust_hue(x, 0.4),
    "hue back": lambda x: tf.image.adjust_hue(x, -1.0),
    "saturation": lambda x: tf.image.adjust_saturation(x, 1.7),
    "standardization": tf.image.per_image_standardization,
    "grey": tf.image.rgb_to_grayscale,
    "floats": lambda x: tf.image.convert_image_dtype(x, tf.float32),
    "bytes": lambda x: tf.image.convert_image_dtype(x, tf.uint8),
    "bytes, clipped": lambda x: tf.image.convert_image_dtype(x, tf.uint8, saturate=True),
    "mirrored": tf.image.flip_left_right,
    "turned once": tf.image.rot90,
    "turned three times": lambda x: tf.image.rot90(x, 3),
    "transposed": tf.image.transpose,
    "resized": lambda x: tf.image.resize(x, [11, 31]),
    "higher": lambda x: tf.image.resize(x, [31, 19]),
    "wider": lambda x: tf.image.resize(x, [23, 31]),
    "bicubic": lambda x: tf.image.resize(x, [11, 31], "bicubic"),
}
OF_FLOATS = {
    "to hsv": tf.image.rgb_to_hsv,
    "from hsv": tf.image.hsv_to_rgb,
    "yiq": tf.image.rgb_to_yiq,
}


@pytest.fixture
def compiled(monkeypatch):
    pytest.importorskip("numba")

    def found(call, image):
        monkeypatch.setattr(hot_loops.Seen, "values", 1 << 40)
        result = np.asarray(call(image))
        monkeypatch.setattr(hot_loops.Seen, "values", 0)
        return result

    return found


IMAGES = {"bytes": BYTES, "cropped bytes": BYTES[0, ::2, 3:], "floats": FLOATS, "wide floats": WIDE}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", IMAGES)
def test_a_loop_gives_the_bits_of_numpy(compiled, name, kind):
    call, image = FUNCTIONS[name], IMAGES[kind]
    np.testing.assert_array_equal(compiled(call, image), np.asarray(call(image)))


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("method", ["bilinear", "bicubic", "area", "lanczos5"])
def test_a_loop_resizes_other_numbers_of_channels(compiled, method, channels):
    image = np.concatenate([WIDE, WIDE], axis=-1)[..., :channels]
    for size in ([11, 31], [31, 19], [23, 7]):
        call = lambda x, size=size: tf.image.resize(x, size, method)  # noqa: E731
        np.testing.assert_array_equal(compiled(call, image), np.asarray(call(image)))


def test_large_images_of_bytes_are_standardized_by_numpy(compiled):
    image = np.zeros((6000, 2000, 3), np.uint8)
    image[::2] = 255
    found = compiled(tf.image.per_image_standardization, image)
    assert np.unique(found).tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("name", OF_FLOATS)
@pytest.mark.parametrize("kind", ["floats", "wide floats"])
def test_a_loop_over_floats_gives_the_bits_of_numpy(compiled, name, kind):
    call, image = OF_FLOATS[name], IMAGES[kind]
    np.testing.assert_array_equal(compiled(call, image), np.asarray(call(image)))


@pytest.mark.parametrize("name", ["hue", "saturation", "floats", "resized", "bytes, clipped"])
def test_values_that_are_not_finite_are_left_to_numpy(compiled, name):
    with np.errstate(all="ignore"):
        call = FUNCTIONS[name]
        np.testing.assert_array_equal(compiled(call, ODD), np.asarray(call(ODD)))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_a_png_file_has_the_pixels_of_pillow(compiled, channels):
    image = pixels(31, 17, channels) // 16
    for kind in range(5):
        image[kind * 6 :] += np.uint8(7)
        for file in (png(image, kind), tf.io.encode_png(image).item()):
            for wanted in (0, 1, 3, 4):
                decoded = lambda x, wanted=wanted: tf.io.decode_png(x, wanted)  # noqa: E731
                np.testing.assert_array_equal(compiled(decoded, file), np.asarray(decoded(file)))
            np.testing.assert_array_equal(compiled(tf.io.decode_png, file), image)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("name", ["mirrored", "turned once", "turned three times", "transposed"])
def test_a_loop_moves_other_numbers_of_channels(compiled, name, channels):
    call, image = FUNCTIONS[name], np.concatenate([BYTES, BYTES], axis=-1)[..., :channels]
    for one in (image, image.astype(np.float32)):
        np.testing.assert_array_equal(compiled(call, one), np.asarray(call(one)))


@pytest.mark.parametrize("kind", IMAGES)
def test_a_loop_repeats_a_single_channel(compiled, kind):
    grey, call = IMAGES[kind][..., :1], tf.image.grayscale_to_rgb
    np.testing.assert_array_equal(compiled(call, grey), np.asarray(call(grey)))


@pytest.mark.parametrize("width", [1, 2, 3, 4, 17])
@pytest.mark.parametrize("upward", [True, False])
def test_a_loop_reverses_the_colours_of_a_bmp_file(compiled, width, upward):
    image, row = pixels(5, width), -(-3 * width // 4) * 4
    rows = np.zeros((5, row), np.uint8)
    rows[:, : 3 * width] = image[..., ::-1].reshape(5, -1)
    about = struct.pack("<IIiiHHI", 54, 40, width, 5 if upward else -5, 1, 24, 0)
    file = b"BM" + bytes(8) + about + bytes(20) + rows[:: -1 if upward else 1].tobytes()
    np.testing.assert_array_equal(compiled(tf.io.decode_bmp, file), image)
    np.testing.assert_array_equal(tf.io.decode_bmp(file), image)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_loop_chooses_the_filters_that_numpy_does(compiled, channels, dtype):
    smooth = np.add.outer(np.arange(9) * 5, np.arange(40) * 3)[..., None] * np.arange(
        1, 1 + channels
    )
    image = (smooth + pixels(9, 40, channels) % 8).astype(dtype)
    image[3:5] = 200
    for one in (image, image[:, :1], image[:1]):
        file = tf.io.encode_png(one).item()
        assert compiled(tf.io.encode_png, one).item() == file
        np.testing.assert_array_equal(tf.io.decode_png(file, dtype=dtype), one)


@pytest.mark.parametrize("at", range(0, 90, 3))
def test_a_damaged_png_file_is_left_to_pillow(compiled, at):
    file = bytearray(png(pixels(5, 4), 4))
    file[at] ^= 0x41
    assert outcome(lambda: compiled(tf.io.decode_png, bytes(file))) == outcome(
        lambda: np.asarray(tf.io.decode_png(bytes(file)))
    )
    assert outcome(lambda: compiled(tf.io.decode_png, bytes(file[:at]))) == outcome(
        lambda: np.asarray(tf.io.decode_png(bytes(file[:at])))
    )


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 150])
def test_loops_keep_the_boxes_that_numpy_keeps(compiled, classes, count):
    boxes = RNG.random((2, count, classes, 4), np.float32)
    boxes[:, ::7] = boxes[:, :1]  # equal boxes, with equal scores
    boxes[:, 3::11] = np.nan
    scores = np.repeat(boxes[:, :, :1, 0], 3, axis=2) * np.array([1, 0.5, 0.7], np.float32)

    def alone(marks):
        return tf.image.non_max_suppression(boxes[0, :, 0], marks[0, :, 0], 40, 0.2, 0.1)

    def combined(marks):
        found = tf.image.combined_non_max_suppression(boxes, marks, 30, 50, 0.2, 0.1)
        return np.concatenate([np.ravel(part) for part in found])

    for call in (alone, combined):
        np.testing.assert_array_equal(compiled(call, scores), np.asarray(call(scores)))


def outcome(call):
    try:
        return call().tolist()
    except tf.errors.InvalidArgumentError as error:
        return re.sub(r"0x\w+|at: .*", "", str(error))


def png(image, kind):
    """Return a file whose rows all have one filter."""
    height, width, channels = image.shape
    plain = image.reshape(height, -1).astype(int)
    left, above, corner = np.zeros((3, *plain.shape), int)
    left[:, channels:], above[1:] = plain[:, :-channels], plain[:-1]
    corner[1:, channels:] = plain[:-1, :-channels]
    near = np.abs(np.stack([above - corner, left - corner, left + above - 2 * corner]))
    paeth = np.choose(near.argmin(0), [left, above, corner])
    guess = [0, left, above, (left + above) // 2, paeth][kind]
    rows = np.concatenate([np.full((height, 1), kind), (plain - guess) % 256], 1).astype(np.uint8)
    header = struct.pack(">IIBBBBB", width, height, 8, [0, 4, 2, 6][channels - 1], 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")
    chunks = [
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_a_batch_without_images_needs_no_loop(compiled):
    empty = BYTES[:0]
    assert compiled(FUNCTIONS["contrast"], empty).shape == empty.shape
    assert compiled(FUNCTIONS["standardization"], empty).shape == empty.shape


def test_few_images_do_not_load_numba(monkeypatch):
    monkeypatch.setattr(hot_loops.Seen, "values", 0)
    assert not hot_loops.are_worth_it(BYTES.size)
    assert hot_loops.Seen.values == BYTES.size
