"""Images that say they have more pixels than memory holds, and images cut off."""

import struct
import zlib


def _chunk(name, content):
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def _png(width, height):
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = _chunk(b"IDAT", zlib.compress(bytes(4 * height if height < 9 else 100)))
    return b"\x89PNG\r\n\x1a\n" + header + rows + _chunk(b"IEND", b"")


def _jpeg(tf, width, height):
    content = bytearray(tf.io.encode_jpeg(tf.zeros([8, 8, 3], tf.uint8)).numpy())
    size = content.find(b"\xff\xc0") + 5
    content[size : size + 4] = struct.pack(">HH", height, width)
    return bytes(content)


def _bmp(width, height):
    header = struct.pack("<IHHIIiiHHIIIIII", 100, 0, 0, 54, 40, width, height, 1, 24, *[0] * 6)
    return b"BM" + header + bytes(64)


def headers_of_too_many_pixels_are_refused(tf, ask):
    return {
        "png": ask(tf.io.decode_png, _png(65000, 65000)),
        "image": ask(tf.io.decode_image, _png(65000, 65000)),
        "jpeg": ask(tf.io.decode_jpeg, _jpeg(tf, 65000, 65000)),
        "bmp": ask(tf.io.decode_bmp, _bmp(65000, 65000)),
        "small": ask(tf.io.decode_png, _png(1, 4)),
    }


def errors_of_huge_images_can_be_ignored(tf, ask):
    images = tf.data.Dataset.from_tensor_slices([_png(1, 4), _png(65000, 65000), _png(1, 4)])
    decoded = images.map(tf.io.decode_png)
    return {
        "all": ask(lambda: len(list(decoded))),
        "left": ask(lambda: len(list(decoded.ignore_errors()))),
    }
