"""Every function of tf.image, in a map over pictures of 224 x 224, one by one and in batches."""

import io
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from PIL import Image
from timing import main

PICTURES, SIDE, BATCH = 32, 224, 16
SEED = (1, 2)

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Row:
    """A function, the names of its inputs, and whether it takes a picture, a batch of pictures, or both."""

    call: Function
    inputs: tuple[str, ...] = ("uint8", "float32")
    forms: tuple[str, ...] = ("each", "batch")


def pictures() -> dict[str, Any]:
    """Return smooth pictures with some noise, as bytes, floats and files, and boxes."""
    rng = np.random.default_rng(0)
    bytes_ = np.stack([_picture(rng) for _ in range(PICTURES)])
    corners = np.sort(rng.random((PICTURES, 100, 2, 2), np.float32), axis=2)
    return {
        "uint8": bytes_,
        "float32": bytes_.astype(np.float32) / np.float32(255),
        "grey": bytes_[..., :1],
        "boxes": corners.reshape(PICTURES, 100, 4),
        "JPEG": [_file(one, "JPEG", quality=90) for one in bytes_],
        "PNG": [_file(one, "PNG") for one in bytes_],
        "GIF": [_file(one, "GIF") for one in bytes_],
        "BMP": [_file(one, "BMP") for one in bytes_],
        "WebP": [_file(one, "WEBP") for one in bytes_],
    }


def _picture(rng: np.random.Generator) -> Any:
    coarse = Image.fromarray(rng.integers(0, 256, (14, 14, 3), np.uint8))
    smooth = np.asarray(coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.int16)
    return np.clip(smooth + rng.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8)


def _file(picture: Any, kind: str, **how: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture).save(out, kind, **how)
    return out.getvalue()


def _augmented(tf: Any, x: Any) -> Any:
    x = tf.image.random_crop(x, [192, 192, 3])
    x = tf.image.random_brightness(x, 0.2)
    return tf.image.random_contrast(x, 0.5, 1.5)


def _thumbnail(tf: Any, x: Any) -> Any:
    return tf.image.resize(tf.io.decode_jpeg(x, channels=3), [160, 160])


def _scores(boxes: Any) -> Any:
    return boxes[..., 0] * boxes[..., 2]


BOTH, BYTES, FLOATS = ("uint8", "float32"), ("uint8",), ("float32",)
EACH, BATCHED = ("each",), ("batch",)
# The whole picture as a box, whose place in the element does not matter.
BOX = np.array([[[0.1, 0.2, 0.8, 0.9]]], np.float32)

METHODS = (
    "bilinear",
    "nearest",
    "bicubic",
    "area",
    "lanczos3",
    "lanczos5",
    "gaussian",
    "mitchellcubic",
)

ROWS: dict[str, Row] = {
    "random_crop, random_brightness, random_contrast": Row(_augmented, BOTH, EACH),
    "decode_jpeg, resize": Row(_thumbnail, ("JPEG",), EACH),
    "decode_jpeg": Row(lambda tf, x: tf.image.decode_jpeg(x), ("JPEG",), EACH),
    "decode_jpeg, ratio=2": Row(lambda tf, x: tf.image.decode_jpeg(x, ratio=2), ("JPEG",), EACH),
    "decode_and_crop_jpeg": Row(
        lambda tf, x: tf.image.decode_and_crop_jpeg(x, [32, 32, 128, 128]), ("JPEG",), EACH
    ),
    "extract_jpeg_shape": Row(lambda tf, x: tf.image.extract_jpeg_shape(x), ("JPEG",), EACH),
    "is_jpeg": Row(lambda tf, x: tf.io.is_jpeg(x), ("JPEG",), EACH),
    "decode_image": Row(lambda tf, x: tf.image.decode_image(x), ("JPEG", "PNG"), EACH),
    "decode_png": Row(lambda tf, x: tf.image.decode_png(x), ("PNG",), EACH),
    "decode_gif": Row(lambda tf, x: tf.image.decode_gif(x), ("GIF",), EACH),
    "decode_bmp": Row(lambda tf, x: tf.image.decode_bmp(x), ("BMP",), EACH),
    "decode_webp": Row(lambda tf, x: tf.image.decode_webp(x), ("WebP",), EACH),
    "encode_jpeg": Row(lambda tf, x: tf.image.encode_jpeg(x), BYTES, EACH),
    "encode_png": Row(lambda tf, x: tf.image.encode_png(x), BYTES, EACH),
    "convert_image_dtype, float32": Row(
        lambda tf, x: tf.image.convert_image_dtype(x, tf.float32), BYTES
    ),
    "convert_image_dtype, uint8": Row(
        lambda tf, x: tf.image.convert_image_dtype(x, tf.uint8), FLOATS
    ),
    "adjust_brightness": Row(lambda tf, x: tf.image.adjust_brightness(x, 0.1)),
    "adjust_contrast": Row(lambda tf, x: tf.image.adjust_contrast(x, 1.5)),
    "adjust_gamma": Row(lambda tf, x: tf.image.adjust_gamma(x, 0.8)),
    "adjust_hue": Row(lambda tf, x: tf.image.adjust_hue(x, 0.1)),
    "adjust_saturation": Row(lambda tf, x: tf.image.adjust_saturation(x, 1.5)),
    "adjust_jpeg_quality": Row(lambda tf, x: tf.image.adjust_jpeg_quality(x, 80), BOTH, EACH),
    "per_image_standardization": Row(lambda tf, x: tf.image.per_image_standardization(x)),
    "rgb_to_grayscale": Row(lambda tf, x: tf.image.rgb_to_grayscale(x)),
    "grayscale_to_rgb": Row(lambda tf, x: tf.image.grayscale_to_rgb(x), ("grey",)),
    "rgb_to_hsv": Row(lambda tf, x: tf.image.rgb_to_hsv(x), FLOATS),
    "hsv_to_rgb": Row(lambda tf, x: tf.image.hsv_to_rgb(x), FLOATS),
    "rgb_to_yiq": Row(lambda tf, x: tf.image.rgb_to_yiq(x), FLOATS),
    "yiq_to_rgb": Row(lambda tf, x: tf.image.yiq_to_rgb(x), FLOATS),
    "rgb_to_yuv": Row(lambda tf, x: tf.image.rgb_to_yuv(x), FLOATS),
    "yuv_to_rgb": Row(lambda tf, x: tf.image.yuv_to_rgb(x), FLOATS),
    "central_crop": Row(lambda tf, x: tf.image.central_crop(x, 0.8)),
    "crop_to_bounding_box": Row(lambda tf, x: tf.image.crop_to_bounding_box(x, 9, 9, 200, 200)),
    "pad_to_bounding_box": Row(lambda tf, x: tf.image.pad_to_bounding_box(x, 8, 8, 240, 240)),
    "resize_with_crop_or_pad": Row(lambda tf, x: tf.image.resize_with_crop_or_pad(x, 192, 256)),
    "resize_with_pad": Row(lambda tf, x: tf.image.resize_with_pad(x, 160, 200)),
    "flip_left_right": Row(lambda tf, x: tf.image.flip_left_right(x)),
    "flip_up_down": Row(lambda tf, x: tf.image.flip_up_down(x)),
    "rot90": Row(lambda tf, x: tf.image.rot90(x)),
    "transpose": Row(lambda tf, x: tf.image.transpose(x)),
    "random_crop": Row(lambda tf, x: tf.image.random_crop(x, [192, 192, 3]), BOTH, EACH),
    "random_flip_left_right": Row(lambda tf, x: tf.image.random_flip_left_right(x)),
    "random_flip_up_down": Row(lambda tf, x: tf.image.random_flip_up_down(x)),
    "random_brightness": Row(lambda tf, x: tf.image.random_brightness(x, 0.2)),
    "random_contrast": Row(lambda tf, x: tf.image.random_contrast(x, 0.5, 1.5)),
    "random_hue": Row(lambda tf, x: tf.image.random_hue(x, 0.2)),
    "random_saturation": Row(lambda tf, x: tf.image.random_saturation(x, 0.5, 1.5)),
    "random_jpeg_quality": Row(lambda tf, x: tf.image.random_jpeg_quality(x, 60, 90), BOTH, EACH),
    "stateless_random_crop": Row(
        lambda tf, x: tf.image.stateless_random_crop(x, [192, 192, 3], SEED), BOTH, EACH
    ),
    "stateless_random_flip_left_right": Row(
        lambda tf, x: tf.image.stateless_random_flip_left_right(x, SEED)
    ),
    "stateless_random_flip_up_down": Row(
        lambda tf, x: tf.image.stateless_random_flip_up_down(x, SEED)
    ),
    "stateless_random_brightness": Row(
        lambda tf, x: tf.image.stateless_random_brightness(x, 0.2, SEED)
    ),
    "stateless_random_contrast": Row(
        lambda tf, x: tf.image.stateless_random_contrast(x, 0.5, 1.5, SEED)
    ),
    "stateless_random_hue": Row(lambda tf, x: tf.image.stateless_random_hue(x, 0.2, SEED)),
    "stateless_random_saturation": Row(
        lambda tf, x: tf.image.stateless_random_saturation(x, 0.5, 1.5, SEED)
    ),
    "stateless_random_jpeg_quality": Row(
        lambda tf, x: tf.image.stateless_random_jpeg_quality(x, 60, 90, SEED), BOTH, EACH
    ),
    **{
        f"resize, {method}": Row(
            lambda tf, x, method=method: tf.image.resize(x, [160, 160], method)
        )
        for method in METHODS
    },
    "resize, antialias": Row(lambda tf, x: tf.image.resize(x, [160, 160], antialias=True)),
    "draw_bounding_boxes": Row(
        lambda tf, x: tf.image.draw_bounding_boxes(
            x, tf.constant(np.repeat(BOX, BATCH, axis=0)), np.array([[1.0, 0.0, 0.0]], np.float32)
        ),
        FLOATS,
        BATCHED,
    ),
    "sample_distorted_bounding_box": Row(
        lambda tf, x: tf.image.sample_distorted_bounding_box(tf.shape(x), BOX)[0], BYTES, EACH
    ),
    "stateless_sample_distorted_bounding_box": Row(
        lambda tf, x: tf.image.stateless_sample_distorted_bounding_box(tf.shape(x), BOX, SEED)[0],
        BYTES,
        EACH,
    ),
    "sobel_edges": Row(lambda tf, x: tf.image.sobel_edges(x), FLOATS, BATCHED),
    "image_gradients": Row(lambda tf, x: tf.image.image_gradients(x), FLOATS, BATCHED),
    "total_variation": Row(lambda tf, x: tf.image.total_variation(x), FLOATS),
    "psnr": Row(lambda tf, x: tf.image.psnr(x, x * 0.9, 1.0), FLOATS),
    "ssim": Row(lambda tf, x: tf.image.ssim(x, x * 0.9, 1.0), FLOATS),
    "ssim_multiscale": Row(lambda tf, x: tf.image.ssim_multiscale(x, x * 0.9, 1.0), FLOATS),
    "extract_patches": Row(
        lambda tf, x: tf.image.extract_patches(
            x, [1, 16, 16, 1], [1, 16, 16, 1], [1, 1, 1, 1], "VALID"
        ),
        FLOATS,
        BATCHED,
    ),
    "extract_glimpse": Row(
        lambda tf, x: tf.image.extract_glimpse(
            x, [96, 96], np.zeros([BATCH, 2], np.float32), noise="zero"
        ),
        FLOATS,
        BATCHED,
    ),
    "crop_and_resize": Row(
        lambda tf, x: tf.image.crop_and_resize(
            x, np.repeat(BOX[0], BATCH, axis=0), np.arange(BATCH), [96, 96]
        ),
        FLOATS,
        BATCHED,
    ),
    "non_max_suppression": Row(
        lambda tf, x: tf.image.non_max_suppression(x, _scores(x), 20), ("boxes",), EACH
    ),
    "non_max_suppression_with_scores": Row(
        lambda tf, x: tf.image.non_max_suppression_with_scores(x, _scores(x), 20)[0],
        ("boxes",),
        EACH,
    ),
    "non_max_suppression_overlaps": Row(
        lambda tf, x: tf.image.non_max_suppression_overlaps(
            tf.matmul(x, tf.transpose(x)), _scores(x), 20
        ),
        ("boxes",),
        EACH,
    ),
    "non_max_suppression_padded": Row(
        lambda tf, x: tf.image.non_max_suppression_padded(
            x, _scores(x), 20, pad_to_max_output_size=True
        )[0],
        ("boxes",),
        EACH,
    ),
    "combined_non_max_suppression": Row(
        lambda tf, x: tf.image.combined_non_max_suppression(
            x[:, :, None], _scores(x)[..., None], 20, 20
        )[0],
        ("boxes",),
        BATCHED,
    ),
}


def measured(tf: Any, seconds: float) -> dict[str, float]:
    """Return the pictures per second of each row. Further arguments of the program select rows by their names."""
    wanted, given = sys.argv[3:], pictures()
    found: dict[str, float] = {}
    for name, row in ROWS.items():
        for kind in row.inputs:
            for form in row.forms:
                if not wanted or any(word in f"{name}, {kind}, {form}" for word in wanted):
                    found[f"{name}|{kind}|{form}"] = _rate(tf, row, given[kind], form, seconds)
    return found


def _rate(tf: Any, row: Row, given: Any, form: str, seconds: float) -> float:
    dataset = tf.data.Dataset.from_tensor_slices(given).repeat()
    threads = tf.data.AUTOTUNE

    def call(x: Any) -> Any:
        return row.call(tf, x)

    if form == "each":
        dataset = dataset.map(call, num_parallel_calls=threads)
    else:
        dataset = dataset.batch(BATCH, drop_remainder=True).map(call, num_parallel_calls=threads)
    elements, rows = iter(dataset), 1 if form == "each" else BATCH
    _looped(elements, seconds, fewest=2 * PICTURES // rows)
    return rows * _looped(elements, seconds)


def _looped(elements: Any, seconds: float, fewest: int = 1) -> float:
    start, count, passed = time.process_time(), 0, 0.0
    while passed < seconds or count < fewest:
        count += sum(1 for _ in islice(elements, 4))
        passed = time.process_time() - start
    return count / passed


def evenfeed(seconds: float) -> dict[str, float]:
    """Run all rows with evenfeed."""
    import evenfeed as tf

    return measured(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Run the same rows with TensorFlow."""
    import tensorflow as tf

    return measured(tf, seconds)


VARIANTS = {"evenfeed": evenfeed, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
