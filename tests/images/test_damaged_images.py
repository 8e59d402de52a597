"""Corrupt images raise evenfeed errors that name the file or the row."""

import io
import random
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image

import evenfeed as tf

PIXELS = np.random.default_rng(0).integers(0, 255, (13, 17, 3), dtype=np.uint8)


def written(kind, mode="RGB", **how):
    out = io.BytesIO()
    Image.fromarray(PIXELS).convert(mode).save(out, kind, **how)
    return out.getvalue()


def moving():
    frames = [Image.fromarray(PIXELS), Image.fromarray(PIXELS[::-1]), Image.fromarray(255 - PIXELS)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    return out.getvalue()


def wide():
    return tf.io.encode_png(PIXELS.astype(np.uint16) * 256).item()


IMAGES = {
    "JPEG": lambda: written("JPEG"),
    "progressive JPEG": lambda: written("JPEG", progressive=True),
    "CMYK": lambda: written("JPEG", "CMYK"),
    "PNG": lambda: written("PNG"),
    "palette": lambda: written("PNG", "P"),
    "16 bits": wide,
    "GIF": moving,
    "BMP": lambda: written("BMP"),
    "BMP of 1 bit": lambda: written("BMP", "1"),
}
READERS = [
    tf.io.decode_image,
    tf.io.decode_png,
    tf.io.decode_bmp,
    tf.io.decode_gif,
    lambda content: tf.io.decode_jpeg(content, try_recover_truncated=True),
    tf.image.extract_jpeg_shape,
]


def damaged(content, chance):
    changed = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4])):
        near = chance.random() < 0.7
        place = chance.randrange(min(len(changed), 200) if near else len(changed))
        changed[place] = chance.choice([0, 255, chance.randrange(256)])
    cut = chance.random() < 0.2
    return bytes(changed[: chance.randrange(len(changed))] if cut else changed)


@pytest.mark.parametrize("name", IMAGES)
def test_corrupt_bytes_give_an_image_or_an_evenfeed_error(name):
    chance, content, refused = random.Random(name), IMAGES[name](), 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also for problems that Pillow only warns about
        for _ in range(250):
            changed = damaged(content, chance)
            for read in READERS:
                try:
                    read(changed)
                except tf.errors.OpError:
                    refused += 1
    assert refused


def chunk(name, content):
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def huge_png():
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 65000, 65000, 8, 2, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes(1 << 20)))
    return b"\x89PNG\r\n\x1a\n" + header + rows + chunk(b"IEND", b"")


def huge_jpeg():
    content = bytearray(written("JPEG"))
    size = content.find(b"\xff\xc0") + 5
    content[size : size + 4] = struct.pack(">HH", 65000, 65000)
    return bytes(content)


def huge_gif():
    content = bytearray(written("GIF"))
    content[6:10] = struct.pack("<HH", 65000, 65000)
    return bytes(content)


def huge_bmp():
    content = bytearray(written("BMP"))
    content[18:26] = struct.pack("<ii", 65000, 65000)
    return bytes(content)


@pytest.mark.parametrize("huge", [huge_png, huge_jpeg, huge_gif, huge_bmp])
def test_a_header_of_more_pixels_than_memory_holds_is_refused(huge):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"claims to have .*too many"):
        tf.io.decode_image(huge())


def test_a_gif_of_many_large_frames_is_refused(monkeypatch):
    monkeypatch.setattr("evenfeed.images.image_files._MOST_PIXELS", 2 * PIXELS.size // 3 + 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"17 x 39 pixels, which is too many"):
        tf.io.decode_gif(moving())


@pytest.mark.parametrize("huge", [huge_png, huge_jpeg, huge_gif, huge_bmp])
def test_in_a_dataset_of_paths_the_error_names_the_path_and_the_next_follows(tmp_path, huge):
    names = [str(tmp_path / f"{number}.image") for number in range(3)]
    for name, content in zip(names, [written("PNG"), huge(), written("PNG")], strict=True):
        tf.io.write_file(name, content)
    images = tf.data.Dataset.from_tensor_slices(names).map(
        lambda name: tf.io.decode_image(tf.io.read_file(name), expand_animations=False)
    )
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(images)
    assert f"element 1 ({names[1]})" in "".join(caught.value.__notes__)
    assert len(list(images.ignore_errors())) == 2


def test_in_a_dataset_of_records_the_error_names_the_file_and_the_record(tmp_path):
    path = str(tmp_path / "images.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for content in (written("PNG"), moving()[:-200], written("PNG")):
            writer.write(content)
    images = tf.data.TFRecordDataset(path).map(
        lambda content: tf.io.decode_image(content, expand_animations=False)
    )
    gifs = tf.data.TFRecordDataset(path).skip(1).take(1).map(tf.io.decode_gif)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(gifs)
    assert path in "".join(caught.value.__notes__)
    assert "row 1" in "".join(caught.value.__notes__)
    assert len(list(images.ignore_errors())) in (2, 3)
