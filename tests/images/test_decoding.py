from contextlib import suppress

import numpy as np
import pytest
from PIL import Image
from tests.images.pictures import file_of, jpeg, pixels

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError


def test_a_decoded_image_is_a_tensor():
    image = tf.io.decode_jpeg(jpeg())
    assert isinstance(image, tf.Tensor)
    assert image.numpy().shape == (20, 24, 3)


def test_a_jpeg_is_near_what_was_encoded():
    smooth = np.broadcast_to(np.arange(0, 240, 10, dtype=np.uint8)[None, :, None], (20, 24, 3))
    found = tf.io.decode_jpeg(tf.io.encode_jpeg(smooth, quality=100, chroma_downsampling=False))
    assert np.abs(found.astype(int) - smooth).max() <= 3


def test_all_frames_of_a_gif():
    first, *rest = [Image.new("RGB", (6, 4), colour) for colour in ("red", "lime", "blue")]
    out = __import__("io").BytesIO()
    first.save(out, "GIF", save_all=True, append_images=rest)
    content = out.getvalue()
    frames = tf.io.decode_gif(content)
    assert frames.shape == (3, 4, 6, 3)
    assert frames[:, 0, 0].tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
    assert tf.io.decode_image(content).shape == (3, 4, 6, 3)
    assert tf.io.decode_image(content, expand_animations=False).shape == (4, 6, 3)
    assert tf.io.decode_jpeg(content).shape == (4, 6, 3)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 17])
def test_a_bmp_has_rows_of_whole_words_from_the_bottom_or_from_the_top(width):
    image = pixels(6, width)
    content = bytearray(file_of("BMP", image))
    np.testing.assert_array_equal(tf.io.decode_bmp(bytes(content)), image)
    content[22:26] = (-6).to_bytes(4, "little", signed=True)
    np.testing.assert_array_equal(tf.io.decode_bmp(bytes(content)), image[::-1])
    with pytest.raises(InvalidArgumentError, match="Invalid BMP data"):
        tf.io.decode_bmp(bytes(content[:-4]))


def test_a_bmp_keeps_its_pixels():
    image = pixels()
    content = file_of("BMP", image)
    np.testing.assert_array_equal(tf.io.decode_bmp(content), image)
    np.testing.assert_array_equal(tf.io.decode_image(content), image)
    with pytest.raises(InvalidArgumentError, match="BMP format using a wrong op"):
        tf.io.decode_jpeg(content)


@pytest.mark.parametrize("decode", [tf.io.decode_image, tf.io.decode_jpeg, tf.io.decode_png])
@pytest.mark.parametrize(
    "content", [b"", b"text", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a"]
)
def test_what_is_no_image_is_an_error(decode, content):
    with pytest.raises(InvalidArgumentError):
        decode(content)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP"])
def test_no_cut_or_flipped_byte_does_more_than_raise(kind):
    content = file_of(kind, pixels())
    rng = np.random.default_rng(3)
    for _ in range(60):
        cut = content[: rng.integers(len(content))]
        broken = bytearray(content)
        broken[rng.integers(len(broken))] ^= 1 << int(rng.integers(8))
        for bad in (cut, bytes(broken)):
            with suppress(InvalidArgumentError):
                assert tf.io.decode_image(bad).dtype == np.uint8


def test_a_file_that_claims_many_pixels_takes_no_memory():
    content = bytearray(file_of("PNG", pixels()))
    content[16:24] = (2**31 - 1).to_bytes(4, "big") * 2
    with pytest.raises(InvalidArgumentError):
        tf.io.decode_png(bytes(content))


@pytest.mark.parametrize("size", [(1, 1), (3, 17), (20, 24), (33, 65)])
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_a_ratio_makes_the_image_smaller(size, ratio):
    expected = tuple(-(-length // ratio) for length in size)
    for channels in (1, 3):
        found = tf.io.decode_jpeg(jpeg(*size), channels=channels, ratio=ratio)
        assert found.shape == (*expected, channels)


def test_a_missing_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "simplejpeg", None)
    monkeypatch.setattr(
        "evenfeed.images.image_files.simplejpeg", tf.core.lazy.LazyModule("simplejpeg")
    )
    with pytest.raises(ImportError, match=r"evenfeed\[images\]"):
        tf.io.decode_jpeg(jpeg())
