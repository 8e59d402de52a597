"""Gradients of functions that evenfeed computes on the host: those of images, and calls of Python."""

import numpy as np

IMAGES = np.linspace(0.1, 0.9, 96, dtype=np.float32).reshape(2, 4, 4, 3) ** 2


def _of(tf, ask, compute):
    """Ask for the result, and for the gradient of a weighted sum of it and of the images."""

    def values():
        x = tf.constant(IMAGES)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = compute(x)
            weights = np.linspace(-1, 2, int(np.prod(y.shape)), dtype=np.float32)
            total = tf.reduce_sum(3 * x) + tf.reduce_sum(
                tf.cast(y, tf.float32) * weights.reshape(y.shape)
            )
        return [np.asarray(p, np.float64).round(3).tolist() for p in (y, tape.gradient(total, x))]

    return ask(values)


def moving(tf, ask):
    image = tf.image
    return {
        "crop": _of(tf, ask, lambda x: image.crop_to_bounding_box(x, 0, 1, 2, 2)),
        "central crop": _of(tf, ask, lambda x: image.central_crop(x, 0.5)),
        "pad": _of(tf, ask, lambda x: image.pad_to_bounding_box(x, 1, 2, 6, 7)),
        "crop and pad": _of(tf, ask, lambda x: image.resize_with_crop_or_pad(x, 2, 6)),
        "resize and pad": _of(tf, ask, lambda x: image.resize_with_pad(x, 3, 5)),
        "flip left right": _of(tf, ask, image.flip_left_right),
        "flip up down": _of(tf, ask, image.flip_up_down),
        "rot90": _of(tf, ask, lambda x: image.rot90(x, 3)),
        "transpose": _of(tf, ask, image.transpose),
        "random crop": _of(tf, ask, lambda x: image.stateless_random_crop(x, [2, 2, 3, 3], (1, 2))),
        "random flip": _of(tf, ask, lambda x: image.stateless_random_flip_left_right(x, (1, 2))),
        "grey to rgb": _of(tf, ask, lambda x: image.grayscale_to_rgb(x[..., :1])),
    }


def resizing(tf, ask):
    ways = ("bilinear", "nearest", "bicubic", "lanczos3", "gaussian", "mitchellcubic")
    resize = tf.image.resize
    found = {
        method: _of(tf, ask, lambda x, method=method: resize(x, [3, 7], method)) for method in ways
    }
    return found | {
        "antialias": _of(tf, ask, lambda x: resize(x, [2, 3], antialias=True)),
        "one image": _of(tf, ask, lambda x: resize(x[0], [5, 3])),
        "same size": _of(tf, ask, lambda x: resize(x, [4, 4])),
        "aspect": _of(tf, ask, lambda x: resize(x[:, :2], [3, 7], preserve_aspect_ratio=True)),
    }


def colours(tf, ask):
    image = tf.image
    return {
        "brightness": _of(tf, ask, lambda x: image.adjust_brightness(x, 0.2)),
        "gamma": _of(tf, ask, lambda x: image.adjust_gamma(x, 2.0, 3.0)),
        "grey": _of(tf, ask, image.rgb_to_grayscale),
        "yiq": _of(tf, ask, image.rgb_to_yiq),
        "from yiq": _of(tf, ask, image.yiq_to_rgb),
        "yuv": _of(tf, ask, image.rgb_to_yuv),
        "from yuv": _of(tf, ask, image.yuv_to_rgb),
        "half": _of(tf, ask, lambda x: image.convert_image_dtype(x, tf.float16)),
        "to integers": _of(tf, ask, lambda x: image.convert_image_dtype(x, tf.uint8)),
        "standardized": _of(tf, ask, image.per_image_standardization),
        "uniform": _of(tf, ask, lambda x: image.per_image_standardization(0 * x + 1)),
        "random brightness": _of(
            tf, ask, lambda x: image.stateless_random_brightness(x, 0.2, (1, 2))
        ),
        "hue": _of(tf, ask, lambda x: image.adjust_hue(x, 0.2)),
        "saturation": _of(tf, ask, lambda x: image.adjust_saturation(x, 2.0)),
        "boxes": _of(
            tf, ask, lambda x: image.draw_bounding_boxes(x, [[[0.0, 0, 1, 1]]] * 2, [[1.0, 0, 0]])
        ),
    }


def python(tf, ask):
    def twice(x):
        return 2 * x

    return {
        "py_function": _of(tf, ask, lambda x: tf.py_function(twice, [x], tf.float32)),
        "several": _of(
            tf,
            ask,
            lambda x: tf.add(*tf.py_function(lambda x: [x, x**2], [x], [tf.float32] * 2)),
        ),
        "numpy_function": _of(tf, ask, lambda x: tf.numpy_function(twice, [x], tf.float32)),
        "numpy": _of(tf, ask, lambda x: x.numpy()),
        "text": _of(tf, ask, lambda x: tf.strings.to_number(tf.strings.as_string(x))),
        "dataset": _of(tf, ask, lambda x: next(iter(tf.data.Dataset.from_tensors(x)))),
        "jpeg": _of(tf, ask, lambda x: 0 * tf.image.adjust_jpeg_quality(x[0], 50)),
    }
