"""Images: decoded, cut, mirrored, resized and converted."""

import base64
from functools import partial

import numpy as np

# A JPEG file of 19 x 23 in colour with colours stored in half the size, and one in grey.
COLOUR = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYnKSopGR8tMC0oMCUoKSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCj/wAARCAAXABMDASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwD2GPU47uB1Q9q8S1u3a68VvEoJ+au98OXEccpDyDnjrWlc+GLaGY6ruBzzXjZLSlk8atOvpGKvDzkduJyvA+1li8U7TitPU49fDFwVB2n8qK6w69Ap27hx70V5r41zu+kEeb/rNiFokeM3ut3FsyFHI5r0G5125bwWHLnO2iivteLqcY4ijFLRsriWTVRI8jl8QXXmt8560UUV6awOHt8KPnbI/9k="
)
GREY = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYnKSopGR8tMC0oMCUoKSj/wAALCAAXABMBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/APYY9Tju4HVD2rxLW7drrxW8Sgn5q318MXBUHafyre8OXEccpDyDnjrWlc+GLaGY6ruBzzUZ16BTt3Dj3rxm91u4tmQo5HNeg3Ou3LeCw5c5215HL4guvNb5z1r/2Q=="
)
# PNG files: colour, colour with opacity, grey, grey of 16 bits, with a palette.
PNGS = {
    "colour": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAIAAADJUWIXAAAAS0lEQVR4nAFAAL//AfPgIrwSX5DAEwWy8mb7LAHGn1EYK+kErV/h4xvffYMEAslZ6/DwEEsL9BLUy/IFBN7JK8nXxf4YtvgF97+hLfQ+IOuD9VddAAAAAElFTkSuQmCC"
    ),
    "opacity": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAYAAABGM/VAAAAAX0lEQVR4nAFUAKv/AfPgIiS8El9JkMATgQWy8ldm+yzuAcafUVEYK+mTBK1f7+HjG/fffYNwBALJWXnr8PBdEEsLC/QS1PrL8gWHBN7JK57J18Xp/hi20PgF99e/oS3T4R4su38Jv8MAAAAASUVORK5CYII="
    ),
    "grey": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAECAAAAABjWKqcAAAAIUlEQVR4nGO8wLj7kiLTpff8amYsrxi0NW6x3D5jyr8DAHPcCXGSc/LLAAAAAElFTkSuQmCC"
    ),
    "wide": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAEEAAAAAAzyHbfAAAAN0lEQVR4nAEsANP/AIyyFfMHDt2XwOYESs39EUg8d9IfSwHJ1lbjLuXSPFU+AfoWKDpA0AUSgDK+SBKvKcyaWQAAAABJRU5ErkJggg=="
    ),
    "palette": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAEBAMAAAC0HehzAAAAGFBMVEXO3FnQsXt/wkVSvXPRep+3XbNzR6ckaGnZumjsAAAAGElEQVR4nGNkMJdkEuC7wORyhoGFSdAPABRFArnYvGW4AAAAAElFTkSuQmCC"
    ),
}
# Of 16 bits: grey with opacity, colour, colour with opacity.
WIDE = {
    "grey with opacity": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADEAQAAABObboOAAAAPklEQVR42gEzAMz/AKu4zhQFzM7VeAaD7KFXSSoA+sINzkcmYiSSOWiRIY0LlwAAQgx7Jhj/yjDkpwHAEDwIOasUUB8LMeoAAAAASUVORK5CYII="
    ),
    "colour": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADEAIAAABrBuXSAAAAVklEQVR42gFLALT/AEhAb1hDY/lkLX/lzsw12B8doGR0oMZ+NgCqdq07qbUPkPWHjjvnTEV9XIzhMC/YEHAAX7it3h9L3r5XTzoxi2HlPOJJ30hOdAS9GJIisyllSBcAAAAASUVORK5CYII="
    ),
    "colour with opacity": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADEAYAAADkZHKFAAAAbklEQVR42gFjAJz/AMc0tR7FXgBOCbGA3FXMb8nuaTQIhylTL0uCzmQnOVEDAB5oJidH8LLRlF1y0ytnzIfMvjxKD0hR3SVgzMSFAYHPAEpigaL3qzx3xJ8DuFBV7uffCxX419HYTXQKXi36+vN2U1YuNTtkg2kAAAAASUVORK5CYII="
    ),
}
IMAGE = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
# Sums of many products differ in their last bits, by the order in which they are added: far from zero that is little.
FAR = IMAGE + np.float32(1000)
FLOATS = (IMAGE / 255).astype(np.float32)
BATCH = np.stack([IMAGE, IMAGE[::-1]])


def decode_jpeg(tf, ask):
    jpeg = partial(ask, tf.io.decode_jpeg)
    return {
        "colour": jpeg(COLOUR),
        "as grey": jpeg(COLOUR, channels=1),
        "grey": jpeg(GREY),
        "grey as colour": jpeg(GREY, channels=3),
        "exact": jpeg(COLOUR, dct_method="INTEGER_ACCURATE"),
        "fast": jpeg(COLOUR, dct_method="INTEGER_FAST"),
        "plain upscaling": jpeg(COLOUR, fancy_upscaling=False),
        "more bytes": jpeg(COLOUR + b"more"),
        "recovered width": ask(
            lambda: tf.io.decode_jpeg(COLOUR[:-60], try_recover_truncated=True).shape[1]
        ),
        "cut off": jpeg(COLOUR[: len(COLOUR) // 2]),
        "without its end": jpeg(COLOUR[:-2]),
        "head only": jpeg(COLOUR[:30]),
        "empty": jpeg(b""),
        "no image": jpeg(b"hello world, this is text"),
        "a vector": jpeg([COLOUR]),
        "a number": jpeg(3),
        "2 channels": jpeg(COLOUR, channels=2),
        "4 channels": jpeg(COLOUR, channels=4),
        **{f"ratio {by}": jpeg(COLOUR, ratio=by) for by in (2, 3, 4, 8)},
        "grey, ratio 2": jpeg(GREY, ratio=2),
        "exact, ratio 2": jpeg(COLOUR, ratio=2, dct_method="INTEGER_ACCURATE"),
        "plain upscaling, ratio 2": jpeg(COLOUR, ratio=2, fancy_upscaling=False),
        "as grey, ratio 4": jpeg(COLOUR, ratio=4, channels=1),
        "unknown method": jpeg(COLOUR, dct_method="SLOW"),
        "a PNG": jpeg(PNGS["colour"]),
        "a box": ask(tf.io.decode_and_crop_jpeg, COLOUR, [3, 4, 5, 6]),
        "a box outside": ask(tf.io.decode_and_crop_jpeg, COLOUR, [3, 4, 5, 60]),
        "an empty box": ask(tf.io.decode_and_crop_jpeg, COLOUR, [3, 4, 0, 6]),
        "shape": ask(tf.io.extract_jpeg_shape, COLOUR),
        "grey shape": ask(tf.io.extract_jpeg_shape, GREY, tf.int64),
        "shape of none": ask(tf.io.extract_jpeg_shape, b"hello"),
        "is": ask(tf.io.is_jpeg, COLOUR),
        "is not": ask(tf.io.is_jpeg, PNGS["colour"]),
    }


def decode_png(tf, ask):
    answers = {
        f"{kind} {channels}": ask(tf.io.decode_png, content, channels=channels)
        for kind, content in PNGS.items()
        for channels in (0, 1, 3, 4)
    }
    answers |= {
        f"{kind} of 16 bits, {channels}, {dtype}": ask(
            tf.io.decode_png, content, channels=channels, dtype=getattr(tf, dtype)
        )
        for kind, content in WIDE.items()
        for channels in (0, 1, 3, 4)
        for dtype in ("uint8", "uint16")
    }
    wide = partial(ask, tf.io.decode_png, dtype=tf.uint16)
    return answers | {
        "grey of 16 bits, whole": wide(PNGS["wide"]),
        "grey of 16 bits, as colour": wide(PNGS["wide"], channels=3),
        "8 bits as 16": wide(PNGS["grey"]),
        "floats": ask(tf.io.decode_png, PNGS["grey"], dtype=tf.float32),
        "2 channels": ask(tf.io.decode_png, PNGS["grey"], channels=2),
        "a JPEG": ask(tf.io.decode_png, COLOUR),
        "cut off": ask(tf.io.decode_png, PNGS["colour"][:40]),
    }


def decode_image(tf, ask):
    image = partial(ask, tf.io.decode_image)
    return {
        "JPEG": image(COLOUR),
        "PNG": image(PNGS["colour"]),
        "floats": image(PNGS["colour"], dtype=tf.float32),
        "16 bits": image(PNGS["colour"], dtype=tf.uint16),
        "grey": image(PNGS["grey"], channels=3),
        "no image": image(b"hello"),
    }


def round_trips(tf, ask):
    def png(image):
        return tf.io.decode_png(tf.io.encode_png(image))

    return {
        "colour": ask(png, IMAGE),
        "grey": ask(png, IMAGE[..., :1]),
        "two channels": ask(png, IMAGE[..., :2]),
        "four": ask(png, np.concatenate([IMAGE, IMAGE[..., :1]], -1)),
        **{
            f"16 bits, {channels} channels": ask(
                lambda image: tf.io.decode_png(tf.io.encode_png(image), dtype=tf.uint16),
                np.stack(
                    [
                        IMAGE[..., 0].astype(np.uint16) * 250 + channel
                        for channel in range(channels)
                    ],
                    -1,
                ),
            )
            for channels in (1, 2, 3, 4)
        },
        "JPEG of floats": ask(tf.io.encode_jpeg, tf.constant(FLOATS)),
        "JPEG of two axes": ask(tf.io.encode_jpeg, IMAGE[..., 0]),
        "JPEG of two channels": ask(tf.io.encode_jpeg, IMAGE[..., :2]),
        "JPEG, quality 101": ask(tf.io.encode_jpeg, IMAGE, quality=101),
        "PNG of floats": ask(tf.io.encode_png, tf.constant(FLOATS)),
    }


def decode_raw(tf, ask):
    raw = partial(ask, tf.io.decode_raw)
    return {
        "uint16": raw(b"abcdef", tf.uint16),
        "other order": raw(b"abcdef", tf.uint16, little_endian=False),
        "floats": raw(np.float32([1.5, -2]).tobytes(), tf.float32),
        "odd": raw(b"abcde", tf.uint16),
        "many": raw([b"abc", b"def"], tf.uint8),
        "nested": raw([[b"abc"], [b"def"]], tf.uint8),
        "unlike": raw([b"abc", b"d"], tf.uint8),
        "one length": raw([b"abcde", b"a"], tf.uint8, fixed_length=3),
        "no multiple": raw([b"abcde"], tf.uint16, fixed_length=3),
        "empty": raw(b"", tf.uint16),
        "text": raw(b"ab", tf.string),
        "bools": raw(b"\1\0", tf.bool),
        "bfloat16": raw(b"\0\x40", tf.bfloat16),
    }


def cut(tf, ask):
    image = tf.image
    return {
        "box": ask(image.crop_to_bounding_box, IMAGE, 1, 2, 3, 4),
        "box of a batch": ask(image.crop_to_bounding_box, BATCH, 1, 2, 3, 4),
        "box outside": ask(image.crop_to_bounding_box, IMAGE, 1, 2, 5, 4),
        "negative": ask(image.crop_to_bounding_box, IMAGE, -1, 2, 3, 4),
        "empty": ask(image.crop_to_bounding_box, IMAGE, 1, 2, 0, 4),
        "padded": ask(image.pad_to_bounding_box, IMAGE, 1, 2, 7, 9),
        "padded too little": ask(image.pad_to_bounding_box, IMAGE, 1, 2, 5, 9),
        "central half": ask(image.central_crop, IMAGE, 0.5),
        "central 0.875": ask(image.central_crop, BATCH, 0.875),
        "central all": ask(image.central_crop, IMAGE, 1.0),
        "central none": ask(image.central_crop, IMAGE, 0.0),
        "central more": ask(image.central_crop, IMAGE, 1.5),
        "higher, narrower": ask(image.resize_with_crop_or_pad, IMAGE, 8, 4),
        "lower, wider": ask(image.resize_with_crop_or_pad, BATCH, 2, 10),
        "no height": ask(image.resize_with_crop_or_pad, IMAGE, 0, 4),
        "crop too large": ask(image.random_crop, IMAGE, [9, 3, 3]),
        "crop of few lengths": ask(image.random_crop, IMAGE, [3, 3]),
        "crop of all": ask(image.random_crop, IMAGE, IMAGE.shape),
        "mirrored": ask(image.flip_left_right, IMAGE),
        "mirrored batch": ask(image.flip_left_right, BATCH),
        "upside down": ask(image.flip_up_down, IMAGE),
        "upside down batch": ask(image.flip_up_down, BATCH),
        "two axes": ask(image.flip_left_right, IMAGE[..., 0]),
    }


def resized(tf, ask):
    resize = tf.image.resize
    answers = {
        f"{height} x {width} {label}": ask(resize, IMAGE, [height, width], **how)
        for height, width in ((3, 4), (10, 14), (5, 3), (5, 7), (1, 1), (11, 2))
        for label, how in {
            "bilinear": {},
            "nearest": {"method": "nearest"},
            "antialias": {"antialias": True},
            "form kept": {"preserve_aspect_ratio": True},
        }.items()
    }
    answers |= {
        f"{height} x {width} {method}{', antialias' * smooth}": ask(
            resize, FAR, [height, width], method, antialias=smooth
        )
        for height, width in ((3, 4), (10, 14), (5, 7), (1, 1), (11, 2))
        for method in ("area", "bicubic", "gaussian", "lanczos3", "lanczos5", "mitchellcubic")
        for smooth in (False, True)
    }
    return answers | {
        "batch": ask(resize, BATCH, [4, 4]),
        "floats": ask(resize, FLOATS, [4, 4], antialias=True),
        "float64": ask(resize, FLOATS.astype(np.float64), [4, 4]),
        "int32": ask(resize, IMAGE.astype(np.int32), [4, 4]),
        "two axes": ask(resize, IMAGE[..., 0], [4, 4]),
        "three lengths": ask(resize, IMAGE, [4, 4, 3]),
        "fractions": ask(resize, IMAGE, [4.0, 4.0]),
        "nothing": ask(resize, IMAGE, [0, 4]),
        "unknown method": ask(resize, IMAGE, [4, 4], method="magic"),
        "bools": ask(resize, IMAGE > 9, [4, 4]),
    }


def coloured(tf, ask):
    convert, image = tf.image.convert_image_dtype, tf.image
    odd = np.float32([-0.5, 0.0, 0.5, 1.0, 2.0])
    names = ("uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64")
    answers = {f"uint8 to {n}": ask(convert, IMAGE, getattr(tf, n)) for n in names}
    answers |= {f"float32 to {n}": ask(convert, FLOATS, getattr(tf, n)) for n in names}
    return answers | {
        "uint16 to uint8": ask(convert, np.array([65535, 256, 255], np.uint16), tf.uint8),
        "int16 to uint8": ask(convert, np.array([32767, 256, 255], np.int16), tf.uint8),
        "wraps": ask(convert, odd, tf.uint8),
        "saturates": ask(convert, odd, tf.uint8, saturate=True),
        "bools": ask(convert, IMAGE, tf.bool),
        "standardised": ask(_rounded, image.per_image_standardization, IMAGE),
        "standardised floats": ask(_rounded, image.per_image_standardization, FLOATS),
        "standardised batch": ask(_rounded, image.per_image_standardization, BATCH),
        "standardised, uniform": ask(image.per_image_standardization, np.ones([2, 2, 3], "f")),
        "brighter": ask(image.adjust_brightness, IMAGE, 0.1),
        "darker": ask(image.adjust_brightness, IMAGE, -0.3),
        "brighter floats": ask(image.adjust_brightness, FLOATS, 0.1),
        "more contrast": ask(image.adjust_contrast, IMAGE, 1.5),
        "less contrast": ask(image.adjust_contrast, FLOATS, 0.5),
        "contrast of a batch": ask(image.adjust_contrast, BATCH, 1.2),
        "grey": ask(image.rgb_to_grayscale, IMAGE),
        "grey floats": ask(image.rgb_to_grayscale, FLOATS),
        "grey of one": ask(image.rgb_to_grayscale, IMAGE[..., :1]),
        "colour of grey": ask(image.grayscale_to_rgb, tf.constant(IMAGE[..., :1])),
        "colour of colour": ask(image.grayscale_to_rgb, tf.constant(IMAGE)),
        "negative brightness": ask(image.random_brightness, IMAGE, -0.1),
        "no contrast": ask(image.random_contrast, IMAGE, 0.5, 0.2),
        "negative contrast": ask(image.random_contrast, IMAGE, -0.5, 0.2),
    }


def _rounded(function, image):
    """Leave out the last digits: sums of many numbers have them by their order."""
    return np.round(np.asarray(function(image)), 4)


def specs_in_map(tf, ask):
    io, image = tf.io, tf.image
    functions = {
        "jpeg": io.decode_jpeg,
        "jpeg of 3": lambda x: io.decode_jpeg(x, channels=3),
        "png of 16 bits": lambda x: io.decode_png(x, dtype=tf.uint16),
        "image": io.decode_image,
        "first frame": lambda x: io.decode_image(x, channels=3, expand_animations=False),
        "gif": io.decode_gif,
        "resized": lambda x: image.resize(io.decode_jpeg(x, channels=3), [5, 6]),
        "nearest": lambda x: image.resize(io.decode_jpeg(x), [5, 6], "nearest"),
        "form kept": lambda x: image.resize(
            io.decode_jpeg(x, channels=3), [5, 6], preserve_aspect_ratio=True
        ),
        "random crop": lambda x: image.random_crop(io.decode_jpeg(x, channels=3), [5, 6, 3]),
        "central crop": lambda x: image.central_crop(io.decode_jpeg(x, channels=3), 0.5),
        "crop or pad": lambda x: image.resize_with_crop_or_pad(io.decode_jpeg(x, channels=3), 5, 6),
        "mirrored": lambda x: image.random_flip_left_right(io.decode_jpeg(x, channels=3)),
        "standardised": lambda x: image.per_image_standardization(io.decode_jpeg(x)),
        "floats": lambda x: image.convert_image_dtype(io.decode_jpeg(x, channels=1), tf.float32),
        "raw": lambda x: io.decode_raw(x, tf.uint8),
    }
    files = tf.data.Dataset.from_tensor_slices([COLOUR])
    return {name: files.map(function).element_spec for name, function in functions.items()}
