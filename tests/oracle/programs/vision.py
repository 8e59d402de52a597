"""Images: patches, boxes, edges, similarity, and WebP files."""

# pyright: basic

import base64
import warnings

import numpy as np

RANDOM = np.random.default_rng(7)
BYTES = RANDOM.integers(0, 256, (2, 9, 7, 3), np.uint8)
FLOATS = (BYTES / 255).astype(np.float32)
OTHER = np.clip(FLOATS + RANDOM.normal(0, 0.1, FLOATS.shape).astype(np.float32), 0, 1)
CORNERS = RANDOM.uniform(-0.2, 1.2, (5, 4)).astype(np.float32)
BOXES = np.array(
    [
        [0, 0, 1, 1],
        [0, 0.1, 1, 1.1],
        [0, -0.1, 1, 0.9],
        [0, 10, 1, 11],
        [0, 10.1, 1, 11.1],
        [1, 101, 0, 100],
        [2, 2, 2, 3],
    ],
    np.float32,
)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3, 0.3], np.float32)
# Made by Pillow 12: 3 x 2 pixels, without loss; the last one has two frames.
WEBP = {
    "rgb": "UklGRkwAAABXRUJQVlA4TEAAAAAvAkAAAC9AFmBCMY7x9kdVYmQBJgQDGUH+Mn0ZdJAFmGhNYpaJBdDZP//BfkU/GqcSQSHbCHDoXpIjuYj+x/AC",
    "rgba": "UklGRlgAAABXRUJQVlA4TEwAAAAvAkAAEC9AFmCCsH8GAfYGFyVZgInB/BVm0RtLBH1qAiBhUkBcMuP2VNS2DfQvs6qEro17AOFHCby+rr8ToZBtBDi1e4CO5SL6H+8E",
    "frames": "UklGRvYAAABXRUJQVlA4WAoAAAASAAAAAgAAAQAAQU5JTQYAAAAAAAAAAABBTk1GYAAAAAAAAAAAAAIAAAEAAAAAAAJWUDhMSAAAAC8CQAAQL0AWYIIwviEE2F+WZAEmBoOZTxz9AcRMuIDCDXGasP3pHYraRnJz/+3Lpu9dgPAhdhv/90RTB4EAZaw4YJyI/se7AEFOTUZiAAAAAAAAAAAAAgAAAQAAAAAAAlZQOExKAAAALwJAABAvQBBAYpFOcEtMsMCyCtlIgjQ2C7S86/PcqZAFmBjsnlm+sZSHoraN2ByB9u63CayYNslb+v+iQHEMBAKUqcJCEf2P1wE=",
}


def _close(found):
    """Round floats: sums and products differ in their last bits."""
    array = np.asarray(found)
    return np.round(array.astype(np.float64), 4) if array.dtype.kind == "f" else array


def _typed(found):
    return _close(found), np.asarray(found).dtype.name


def _ways(tf, ask, call, *arrays):
    """Ask at once, in a map, and in a function."""
    dataset = tf.data.Dataset.from_tensors(arrays)

    def in_map():
        return _typed(next(iter(dataset.map(call))))

    return {
        "": ask(lambda: _typed(call(*map(tf.constant, arrays)))),
        " in a map": ask(in_map),
        " in a function": ask(lambda: _in_function(tf, call, *arrays)),
    }


def _in_function(tf, call, *arrays):
    """Call a function whose result has no shape before it runs: evenfeed warns that it runs as plain Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _typed(tf.function(call)(*map(tf.constant, arrays)))


def _labelled(found):
    return {
        f"{label}{way}": answer for label, ways in found.items() for way, answer in ways.items()
    }


def patches(tf, ask):
    def cut(size, stride, rate, padding):
        return lambda x: tf.image.extract_patches(
            x, [1, *size, 1], [1, *stride, 1], [1, *rate, 1], padding
        )

    ways = {
        "valid": ((3, 2), (2, 1), (1, 1), "VALID"),
        "same": ((3, 2), (2, 3), (1, 1), "SAME"),
        "rates": ((3, 2), (1, 2), (2, 3), "SAME"),
        "valid rates": ((2, 2), (3, 3), (3, 2), "VALID"),
        "too large": ((10, 2), (3, 3), (1, 1), "VALID"),
        "unknown padding": ((3, 2), (3, 3), (1, 1), "FULL"),
    }
    found = {label: _ways(tf, ask, cut(*way), BYTES[:1]) for label, way in ways.items()}
    found["floats"] = _ways(tf, ask, cut((2, 2), (2, 2), (1, 1), "SAME"), FLOATS[:1])
    found["one image"] = _ways(tf, ask, cut((2, 2), (2, 2), (1, 1), "SAME"), FLOATS[0])
    return _labelled(found)


def crops(tf, ask):
    crop = tf.image.crop_and_resize
    which = np.array([0, 1, 1, 0, 1], np.int32)
    given = (FLOATS, CORNERS, which)
    found = {
        "bilinear": _ways(tf, ask, lambda x, b, i: crop(x, b, i, [4, 3]), *given),
        "nearest": _ways(
            tf, ask, lambda x, b, i: crop(x, b, i, [4, 3], "nearest"), BYTES, *given[1:]
        ),
    }
    return {
        **_labelled(found),
        "one pixel": ask(lambda: _typed(crop(*given, [1, 1]))),
        "outside": ask(lambda: _typed(crop(*given, [3, 3], extrapolation_value=7.0))),
        "doubles": ask(lambda: _typed(crop(BYTES / 255, *given[1:], [2, 2]))),
        "an index too high": ask(lambda: crop(FLOATS, CORNERS[:1], [2], [2, 2])),
        "a negative index": ask(lambda: crop(FLOATS, CORNERS[:1], [-1], [2, 2])),
        "other counts": ask(lambda: crop(FLOATS, CORNERS[:2], [0], [2, 2])),
        "one image": ask(lambda: crop(FLOATS[0], CORNERS[:1], [0], [2, 2])),
        "flat boxes": ask(lambda: crop(FLOATS, CORNERS[0], [0], [2, 2])),
        "empty crops": ask(lambda: crop(FLOATS, CORNERS[:1], [0], [0, 2])),
        "unknown method": ask(lambda: crop(FLOATS, CORNERS[:1], [0], [2, 2], "cubic")),
    }


def glimpses(tf, ask):
    offsets = np.array([[0.3, -0.6], [-1.0, 1.0]], np.float32)
    ways = {
        "centered": {},
        "from the corner": {"centered": False},
        "in pixels": {"centered": False, "normalized": False},
        "centered, in pixels": {"normalized": False},
    }
    found = {
        f"{label} {size}": _ways(
            tf,
            ask,
            lambda x, o, way=way, size=size: tf.image.extract_glimpse(
                x, size, o * 4.0 if way == ways["in pixels"] else o, noise="zero", **way
            ),
            FLOATS,
            offsets,
        )
        for (label, way), size in zip(ways.items(), ([4, 3], [3, 4]) * 2, strict=True)
    }
    noisy = tf.image.extract_glimpse(FLOATS, [30, 30], offsets)
    return {
        **_labelled(found),
        "uniform noise stays in range": ask(
            lambda: bool(np.asarray(noisy).min() >= 0 and np.asarray(noisy).max() <= 1)
        ),
        "unknown noise": ask(lambda: tf.image.extract_glimpse(FLOATS, [3, 3], offsets, noise="x")),
    }


def edges(tf, ask):
    image = tf.image

    def gradients(part):
        return lambda x: image.image_gradients(x)[part]

    found = {
        "sobel": _ways(tf, ask, image.sobel_edges, FLOATS),
        "down": _ways(tf, ask, gradients(0), BYTES.astype(np.int32)),
        "right": _ways(tf, ask, gradients(1), FLOATS),
        "variation": _ways(tf, ask, image.total_variation, FLOATS),
        "variation of one": _ways(tf, ask, image.total_variation, FLOATS[0]),
        "variation of rows": _ways(tf, ask, image.total_variation, FLOATS[0, 0]),
    }
    return {
        **_labelled(found),
        "gradients of one image": ask(lambda: image.image_gradients(tf.constant(FLOATS[0]))),
    }


def similarity(tf, ask):
    image = tf.image
    large = np.kron(FLOATS, np.ones((1, 4, 5, 1), np.float32))[:, :35, :33]
    noisy = np.clip(large + RANDOM.normal(0, 0.1, large.shape).astype(np.float32), 0, 1)
    small = {"filter_size": 5}
    scales = {"power_factors": (0.2, 0.5, 0.3), "filter_size": 7}
    found = {
        "ssim": _ways(tf, ask, lambda a, b: image.ssim(a, b, 1.0), large, noisy),
        "ssim of one": {"": ask(lambda: _typed(image.ssim(large[0], noisy[0], 1.0)))},
        "small windows": {"": ask(lambda: _typed(image.ssim(FLOATS, OTHER, 1.0, **small)))},
        "bytes": _ways(
            tf, ask, lambda a, b: image.ssim(a, b, 255, **small), BYTES, BYTES[::-1].copy()
        ),
        "index map": {
            "": ask(lambda: _typed(image.ssim(FLOATS, OTHER, 1.0, return_index_map=True, **small)))
        },
        "too small": _ways(tf, ask, lambda a, b: image.ssim(a, b, 1.0), FLOATS, OTHER),
        "multiscale": _ways(
            tf, ask, lambda a, b: image.ssim_multiscale(a, b, 1.0, **scales), large, noisy
        ),
        "psnr": _ways(tf, ask, lambda a, b: image.psnr(a, b, 1.0), FLOATS, OTHER),
    }
    return {
        **_labelled(found),
        "other shapes": ask(lambda: image.ssim(large, large[:, :20], 1.0)),
    }


def suppression(tf, ask):
    image = tf.image
    nms = image.non_max_suppression

    def numbers(found):
        return [_typed(part) for part in found]

    many = RANDOM.uniform(0, 1, (40, 4)).astype(np.float32)
    ordered = np.sort(many.reshape(40, 2, 2), axis=1).reshape(40, 4)
    marks = RANDOM.uniform(0, 1, 40).astype(np.float32)
    scored = image.non_max_suppression_with_scores

    def padded(boxes, scores, *args, **kwargs):
        given = tf.constant(boxes), tf.constant(scores)
        return image.non_max_suppression_padded(*given, *args, **kwargs)

    overlaps = RANDOM.uniform(0, 1, (6, 6)).astype(np.float32)
    classes = RANDOM.uniform(0, 1, (2, 20, 3)).astype(np.float32)
    class_boxes = RANDOM.uniform(-0.2, 1.2, (2, 20, 3, 4)).astype(np.float32)
    combined = image.combined_non_max_suppression
    return {
        "boxes": ask(lambda: _typed(nms(BOXES, SCORES, 7))),
        "at most 2": ask(lambda: _typed(nms(BOXES, SCORES, 2))),
        "none": ask(lambda: _typed(nms(BOXES, SCORES, 0))),
        "of none": ask(lambda: _typed(nms(BOXES[:0], SCORES[:0], 3))),
        "score threshold": ask(lambda: _typed(nms(BOXES, SCORES, 7, 0.5, 0.6))),
        "threshold 0": ask(lambda: _typed(nms(BOXES, SCORES, 7, 0.0))),
        "threshold 1": ask(lambda: _typed(nms(BOXES, SCORES, 7, 1.0))),
        "many": ask(lambda: _typed(nms(many, marks, 40, 0.2))),
        "in a function": ask(lambda: _in_function(tf, lambda b, s: nms(b, s, 7), BOXES, SCORES)),
        "in a map": ask(
            lambda: _typed(
                next(
                    iter(
                        tf.data.Dataset.from_tensors((BOXES, SCORES)).map(lambda b, s: nms(b, s, 7))
                    )
                )
            )
        ),
        "wrong threshold": ask(lambda: nms(BOXES, SCORES, 7, 1.5)),
        "other counts": ask(lambda: nms(BOXES, SCORES[:3], 7)),
        "flat boxes": ask(lambda: nms(BOXES[0], SCORES[:1], 7)),
        "with scores": ask(lambda: numbers(scored(BOXES, SCORES, 7))),
        "soft": ask(lambda: numbers(scored(BOXES, SCORES, 7, soft_nms_sigma=0.5))),
        "soft, many": ask(lambda: numbers(scored(many, marks, 40, 1.0, 0.1, soft_nms_sigma=0.3))),
        "overlaps": ask(
            lambda: _typed(image.non_max_suppression_overlaps(overlaps, SCORES[:6], 6, 0.4, 0.4))
        ),
        "overlaps of other counts": ask(
            lambda: image.non_max_suppression_overlaps(overlaps, SCORES, 6)
        ),
        "not padded": ask(lambda: numbers(padded(BOXES, SCORES, 6))),
        "padded": ask(lambda: numbers(padded(BOXES, SCORES, 6, pad_to_max_output_size=True))),
        "padded, many": ask(
            lambda: numbers(padded(ordered, marks, 12, 0.2, 0.3, pad_to_max_output_size=True))
        ),
        "padded, any corners": ask(
            lambda: numbers(padded(many, marks, 12, 0.2, 0.3, pad_to_max_output_size=True))
        ),
        "padded batch": ask(
            lambda: numbers(
                padded(
                    ordered.reshape(2, 20, 4),
                    marks.reshape(2, 20),
                    12,
                    0.2,
                    0.3,
                    pad_to_max_output_size=True,
                )
            )
        ),
        "batch that is not padded": ask(lambda: padded(many[None], marks[None], 12)),
        "combined": ask(lambda: numbers(combined(class_boxes, classes, 4, 9, 0.2, 0.1))),
        "combined, shared boxes": ask(
            lambda: numbers(combined(class_boxes[:, :, :1], classes, 4, 9, 0.2, 0.1))
        ),
        "combined, per class": ask(
            lambda: numbers(combined(class_boxes, classes, 2, 9, pad_per_class=True))
        ),
        "combined, not clipped": ask(
            lambda: numbers(combined(class_boxes, classes, 2, 20, clip_boxes=False))
        ),
    }


def drawn_boxes(tf, ask):
    boxes = np.stack([CORNERS, CORNERS[::-1]])
    ordered = np.sort(boxes.reshape(2, 5, 2, 2), axis=2).reshape(2, 5, 4)
    draw = tf.image.draw_bounding_boxes
    colours = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32)
    empty = np.zeros_like(FLOATS)
    found = {
        "boxes": _ways(tf, ask, lambda x, b: draw(x, b, None), empty, ordered),
        "any corners": _ways(tf, ask, lambda x, b: draw(x, b, None), empty, boxes),
        "colours": _ways(tf, ask, draw, empty, ordered, colours),
        "one channel": _ways(tf, ask, lambda x, b: draw(x, b, None), empty[..., :1], ordered),
        "halves": _ways(tf, ask, lambda x, b: draw(x, b, None), empty.astype("f2"), ordered),
        "one image": _ways(tf, ask, lambda x, b: draw(x, b, None), empty[0], ordered[0]),
    }
    return {**_labelled(found), "bytes": ask(lambda: draw(tf.constant(BYTES), ordered, None))}


def distorted_boxes(tf, ask):
    choose = tf.image.stateless_sample_distorted_bounding_box
    boxes = np.array([[[0.1, 0.2, 0.5, 0.9], [0.3, 0.3, 0.4, 0.4]]], np.float32)

    def numbers(found):
        return [_typed(part) for part in found]

    wide = {"aspect_ratio_range": (0.5, 2.0), "area_range": (0.3, 0.6), "min_object_covered": 0.8}
    found = {
        f"seed {seed}, {height} x {width}{label}": ask(
            lambda seed=seed, size=[height, width, 3], how=how: numbers(
                choose(size, boxes, seed, **how)
            )
        )
        for seed in ((1, 2), (-3, 2**40), (0, 0))
        for height, width in ((20, 30), (480, 640), (1, 1), (5, 300))
        for label, how in (("", {}), (", other limits", wide))
    }
    none = np.zeros((1, 0, 4), np.float32)
    plain = tf.image.sample_distorted_bounding_box
    begin, size, box = plain(
        [20, 30, 3], boxes, area_range=(1.0, 1.0), aspect_ratio_range=(1.5, 1.5)
    )
    return {
        **found,
        "64-bit sizes": ask(lambda: numbers(choose(np.array([20, 30, 3]), boxes, (1, 2)))),
        "no boxes": ask(lambda: choose([20, 30, 3], none, (1, 2))),
        "no boxes, the image": ask(
            lambda: numbers(choose([20, 30, 3], none, (1, 2), use_image_if_no_bounding_boxes=True))
        ),
        "outside": ask(lambda: choose([20, 30, 3], boxes * 3, (1, 2))),
        "flat boxes": ask(lambda: choose([20, 30, 3], boxes[0, 0], (1, 2))),
        "two lengths": ask(lambda: choose([20, 30], boxes, (1, 2))),
        "no attempt succeeds": ask(
            lambda: numbers(
                choose([20, 30, 3], boxes, (1, 2), area_range=(1.0, 1.0), max_attempts=1)
            )
        ),
        "the whole image": ask(lambda: numbers([begin, size, box])),
        "in a map": ask(
            lambda: numbers(
                next(
                    iter(
                        tf.data.Dataset.from_tensors(boxes).map(
                            lambda b: choose([20, 30, 3], b, (1, 2))
                        )
                    )
                )
            )
        ),
    }


def webp(tf, ask):
    files = {name: base64.b64decode(text) for name, text in WEBP.items()}
    found = {}
    for label, content in files.items():
        found |= {
            f"{label}, {channels}": ask(
                lambda c=content, n=channels: _typed(tf.io.decode_webp(c, n))
            )
            for channels in (0, 1, 3, 4)
        }
        found[f"{label}, decode_image"] = ask(lambda c=content: _typed(tf.io.decode_image(c)))
        found[f"{label}, first frame"] = ask(
            lambda c=content: _typed(tf.io.decode_image(c, expand_animations=False))
        )
        found[f"{label}, floats"] = ask(
            lambda c=content: _typed(tf.io.decode_image(c, dtype=tf.float32))
        )
        found[f"{label}, in a map"] = ask(
            lambda c=content: _typed(
                next(iter(tf.data.Dataset.from_tensors(c).map(tf.io.decode_webp)))
            )
        )
        found[f"{label}, damaged"] = ask(lambda c=content: tf.io.decode_webp(c[: len(c) // 2]))
    return {
        **found,
        "another format": ask(lambda: tf.io.decode_webp(b"GIF89a")),
        "no image": ask(lambda: tf.io.decode_webp(b"hello, world, hello, world")),
        "wide": ask(lambda: tf.io.decode_webp(files["rgb"], dtype=tf.uint16)),
    }
