import io
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.images.image_files import in_channels, is_wide, wide_pixels
from evenfeed.images.png_writing import png_file


def wide(channels, height=5, width=6):
    drawn = np.random.default_rng(channels).integers(0, 1 << 16, (height, width, channels))
    return drawn.astype(np.uint16)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (5, 6), (33, 17)])
def test_all_bits_come_back(channels, size):
    image = wide(channels, *size)
    content = png_file(image, 6)
    assert is_wide(content)
    found = wide_pixels(lambda: Image.open(io.BytesIO(content)), content)
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, image)


def test_other_readers_see_the_upper_bits():
    image = wide(3)
    seen = np.asarray(Image.open(io.BytesIO(png_file(image, 6))))
    np.testing.assert_array_equal(seen, image >> 8)
    assert not is_wide(tf.io.encode_png((image >> 8).astype(np.uint8)).item())


@pytest.mark.parametrize(("have", "want"), [(1, 3), (1, 4), (2, 1), (2, 3), (2, 4), (4, 3), (3, 4)])
def test_channels_are_repeated_left_out_or_opaque(have, want):
    image = wide(have)
    found = in_channels(image, want)
    assert found.shape == (5, 6, want)
    colour = image[..., :1] if have < 3 else image[..., :3]
    np.testing.assert_array_equal(
        found[..., : min(3, want)], np.broadcast_to(colour, found[..., : min(3, want)].shape)
    )
    if want == 4:
        opacity = image[..., 1] if have == 2 else np.full((5, 6), 65535)
        np.testing.assert_array_equal(found[..., 3], opacity)


def test_no_cut_or_flipped_byte_does_more_than_raise():
    content = png_file(wide(3), 6)
    rng = np.random.default_rng(3)
    for _ in range(60):
        broken = bytearray(content)
        broken[rng.integers(len(broken))] ^= 1 << int(rng.integers(8))
        for bad in (content[: rng.integers(len(content))], bytes(broken)):
            with suppress(InvalidArgumentError):
                assert tf.io.decode_png(bad, dtype=tf.uint16).dtype == np.uint16
