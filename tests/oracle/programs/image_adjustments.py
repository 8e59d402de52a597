"""Images: hues, saturations, colour spaces, rotations, frames, JPEG noise, and random changes with two seeds."""

# pyright: basic

from functools import partial

import numpy as np

IMAGE = np.random.default_rng(0).integers(0, 256, (6, 4, 3), np.uint8)
GREY_PIXELS = np.full((2, 2, 3), 77, np.uint8)
KINDS = {
    "bytes": IMAGE,
    "floats": (IMAGE / 255).astype(np.float32),
    "batch": np.stack([IMAGE, IMAGE[::-1]]),
    "grey": GREY_PIXELS,
    "one channel": IMAGE[..., :1],
    "flat": IMAGE[0],
}
SEEDS = [(1, 2), (-3, 2**40)]


def _close(found):
    """Round floats: sums and products differ in their last bits."""
    array = np.asarray(found)
    return np.round(array.astype(np.float64), 3) if array.dtype.kind == "f" else array


def _on_all(ask, call, kinds=KINDS):
    return {
        label: ask(lambda image=image: (_close(call(image)), np.asarray(call(image)).dtype.name))
        for label, image in kinds.items()
    }


def _calls(tf, ask, calls, kinds=KINDS):
    return {
        f"{name}, {label}": answer
        for name, call in calls.items()
        for label, answer in _on_all(ask, call, kinds).items()
    }


def adjusted(tf, ask):
    image = tf.image
    return _calls(
        tf,
        ask,
        {
            "hue": lambda x: image.adjust_hue(x, 0.2),
            "hue back": lambda x: image.adjust_hue(x, -0.7),
            "saturation": lambda x: image.adjust_saturation(x, 0.5),
            "more saturation": lambda x: image.adjust_saturation(x, 3.0),
            "gamma": lambda x: image.adjust_gamma(x, 0.5, 0.75),
            "rot90": image.rot90,
            "rot90 three times": lambda x: image.rot90(x, -1),
            "transpose": image.transpose,
            "resize_with_pad": lambda x: image.resize_with_pad(x, 5, 9),
            "nearest": lambda x: image.resize_with_pad(x, 3, 3, "nearest"),
        },
    )


def colour_spaces(tf, ask):
    floats = {
        "floats": KINDS["floats"],
        "doubles": IMAGE / 255,
        "one pixel": np.array([0.25, 0.5, 0.75], np.float32),
        "black and white": np.array([[0, 0, 0], [1, 1, 1]], np.float32),
        "bytes": IMAGE,
        "one channel": IMAGE[..., :1] / 255,
    }

    def of_tensors(name):
        return lambda image: getattr(tf.image, name)(tf.constant(image))

    names = ["rgb_to_hsv", "hsv_to_rgb", "rgb_to_yiq", "yiq_to_rgb", "rgb_to_yuv", "yuv_to_rgb"]
    found = _calls(tf, ask, {name: of_tensors(name) for name in names}, floats)
    # TensorFlow multiplies integers by the matrices, rounded to integers.
    return {
        label: answer
        for label, answer in found.items()
        if not (("yiq" in label or "yuv" in label) and label.endswith("bytes"))
    }


def measured(tf, ask):
    one, other = KINDS["floats"], KINDS["floats"][::-1].copy()
    variation = tf.image.total_variation
    psnr = tf.image.psnr
    return {
        "variation": ask(lambda: _close(variation(tf.constant(one)))),
        "variation of a batch": ask(lambda: _close(variation(tf.constant(np.stack([one, other]))))),
        "psnr": ask(lambda: _close(psnr(tf.constant(one), tf.constant(other), 1.0))),
        "psnr of bytes": ask(
            lambda: _close(psnr(tf.constant(IMAGE), tf.constant(IMAGE[::-1].copy()), 255))
        ),
        "psnr of a batch": ask(
            lambda: _close(
                psnr(tf.constant(KINDS["batch"]), tf.constant(KINDS["batch"][::-1].copy()), 255)
            )
        ),
        "the same": ask(lambda: _close(psnr(tf.constant(one), tf.constant(one), 1.0))),
    }


def seeded(tf, ask):
    image = tf.image
    calls = {
        "crop": lambda x, seed: image.stateless_random_crop(x, (2, 3, 3), seed),
        "flip_left_right": image.stateless_random_flip_left_right,
        "flip_up_down": image.stateless_random_flip_up_down,
        "brightness": lambda x, seed: image.stateless_random_brightness(x, 0.4, seed),
        "contrast": lambda x, seed: image.stateless_random_contrast(x, 0.2, 1.5, seed),
        "hue": lambda x, seed: image.stateless_random_hue(x, 0.4, seed),
        "saturation": lambda x, seed: image.stateless_random_saturation(x, 0.2, 2.5, seed),
    }
    kinds = {label: KINDS[label] for label in ("bytes", "floats", "batch")}
    return {
        f"{label}, seed {seed}": answer
        for seed in SEEDS
        for label, answer in _calls(
            tf, ask, {name: partial(call, seed=seed) for name, call in calls.items()}, kinds
        ).items()
    }


def in_a_map(tf, ask):
    def changed(image, seed):
        image = tf.image.stateless_random_brightness(image, 0.4, seed)
        image = tf.image.stateless_random_flip_left_right(image, seed)
        image = tf.image.stateless_random_crop(image, (4, 3, 3), seed)
        image = tf.image.stateless_random_hue(image, 0.4, seed)
        return tf.image.rot90(tf.image.adjust_saturation(image, 0.5))

    def all_of():
        images = np.stack([IMAGE, IMAGE[::-1], IMAGE[:, ::-1]])
        dataset = tf.data.Dataset.from_tensor_slices((images, [[1, 2], [3, 4], [-5, 6]]))
        return [np.asarray(image) for image in dataset.map(changed)]

    def specs():
        dataset = tf.data.Dataset.from_tensors(IMAGE)
        functions = [
            tf.image.rot90,
            tf.image.transpose,
            lambda x: tf.image.resize_with_pad(x, 8, 9),
        ]
        return [np.asarray(next(iter(dataset.map(function)))).shape for function in functions]

    return {"": ask(all_of), "shapes": ask(specs)}


def errors(tf, ask):
    image = tf.image
    calls = {
        "hue beyond a turn": lambda: image.adjust_hue(IMAGE, 1.5),
        "gamma below 0": lambda: image.adjust_gamma(IMAGE, -1),
        "a frame without height": lambda: image.resize_with_pad(IMAGE, 0, 3),
        "max_delta of hue": lambda: image.random_hue(IMAGE, 0.6),
        "max_delta below 0": lambda: image.stateless_random_hue(IMAGE, -0.1, (1, 2)),
        "brightness below 0": lambda: image.stateless_random_brightness(IMAGE, -0.1, (1, 2)),
        "saturations in reverse": lambda: image.random_saturation(IMAGE, 2.0, 1.0),
        "saturation below 0": lambda: image.stateless_random_saturation(IMAGE, -1.0, 1.0, (1, 2)),
        "quality above 100": lambda: image.random_jpeg_quality(IMAGE, 50, 101),
        "qualities in reverse": lambda: image.stateless_random_jpeg_quality(IMAGE, 60, 50, (1, 2)),
        "a seed of one number": lambda: image.stateless_random_hue(IMAGE, 0.1, 1),
        "psnr of two shapes": lambda: image.psnr(tf.constant(IMAGE), tf.constant(IMAGE[1:]), 255),
        "variation of a row": lambda: image.total_variation(tf.constant(IMAGE[0])),
        "quality of a batch": lambda: image.adjust_jpeg_quality(KINDS["batch"], 50),
    }
    return {label: ask(call) for label, call in calls.items()}
