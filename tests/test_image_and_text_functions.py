"""Every function of `image` and `strings` in a map: traced or per element, the dtypes and the values are the same."""

# pyright: basic

import io

import numpy as np
import PIL.Image
import pytest

import evenfeed as tf
from evenfeed.dataset import plan_of

COUNT = 3
PIXELS = np.random.default_rng(0).integers(0, 256, (COUNT, 12, 12, 3), np.uint8)
BOXES = np.sort(
    np.random.default_rng(1).uniform(0, 1, (COUNT, 4, 2, 2)).astype(np.float32), axis=2
).reshape(COUNT, 4, 4)


def files(kind):
    found = []
    for pixels in PIXELS:
        file = io.BytesIO()
        PIL.Image.fromarray(pixels).save(file, kind)
        found.append(file.getvalue())
    return found


# What the calls get, one of each for every element.
COLUMNS = {
    "pixels": PIXELS,
    "floats": (PIXELS / 255).astype(np.float32),
    "others": (PIXELS[::-1] / 255).astype(np.float32),
    "boxes": BOXES,
    "scores": np.random.default_rng(2).uniform(0, 1, (COUNT, 4)).astype(np.float32),
    "size": np.tile(np.array([120, 120, 3], np.int32), (COUNT, 1)),
    "one": np.zeros((COUNT, 1), np.int32),
    **{kind: files(kind) for kind in ("JPEG", "PNG", "GIF", "BMP", "WEBP")},
    "text": ["  Hello, World ", "é 1 b", "zwei Wörter"],
    "number": ["1", "-2.5", "3e4"],
    "points": np.array([[72, 233], [97, 98], [8364, 48]], np.int32),
    "words": [["a", "b"], ["c", "d"], ["é", "f"]],
    "key": np.array([[1, 2], [3, 4], [5, 6]], np.int32),
}
SEED = (1, 2)

KERNELS = {
    "adjust_brightness": lambda e: tf.image.adjust_brightness(e["pixels"], 0.1),
    "adjust_contrast": lambda e: tf.image.adjust_contrast(e["pixels"], 1.5),
    "adjust_gamma": lambda e: tf.image.adjust_gamma(e["floats"], 0.5),
    "adjust_hue": lambda e: tf.image.adjust_hue(e["pixels"], 0.2),
    "adjust_jpeg_quality": lambda e: tf.image.adjust_jpeg_quality(e["pixels"], 50),
    "adjust_saturation": lambda e: tf.image.adjust_saturation(e["pixels"], 0.5),
    "central_crop": lambda e: tf.image.central_crop(e["pixels"], 0.5),
    "convert_image_dtype": lambda e: tf.image.convert_image_dtype(e["pixels"], tf.float32),
    "crop_to_bounding_box": lambda e: tf.image.crop_to_bounding_box(e["pixels"], 1, 2, 3, 4),
    "decode_and_crop_jpeg": lambda e: tf.image.decode_and_crop_jpeg(e["JPEG"], [1, 2, 3, 4]),
    "decode_bmp": lambda e: tf.image.decode_bmp(e["BMP"]),
    "decode_gif": lambda e: tf.image.decode_gif(e["GIF"]),
    "decode_image": lambda e: tf.image.decode_image(e["PNG"]),
    "decode_jpeg": lambda e: tf.image.decode_jpeg(e["JPEG"]),
    "decode_png": lambda e: tf.image.decode_png(e["PNG"]),
    "decode_webp": lambda e: tf.image.decode_webp(e["WEBP"]),
    "draw_bounding_boxes": lambda e: tf.image.draw_bounding_boxes(e["batch"], e["many"], None),
    "encode_jpeg": lambda e: tf.image.encode_jpeg(e["pixels"]),
    "encode_png": lambda e: tf.image.encode_png(e["pixels"]),
    "extract_jpeg_shape": lambda e: tf.image.extract_jpeg_shape(e["JPEG"]),
    "flip_left_right": lambda e: tf.image.flip_left_right(e["pixels"]),
    "flip_up_down": lambda e: tf.image.flip_up_down(e["pixels"]),
    "grayscale_to_rgb": lambda e: tf.image.grayscale_to_rgb(e["grey"]),
    "hsv_to_rgb": lambda e: tf.image.hsv_to_rgb(e["floats"]),
    "is_jpeg": lambda e: tf.image.is_jpeg(e["PNG"]),
    "pad_to_bounding_box": lambda e: tf.image.pad_to_bounding_box(e["pixels"], 1, 2, 15, 16),
    "per_image_standardization": lambda e: tf.image.per_image_standardization(e["pixels"]),
    "random_brightness": lambda e: tf.image.random_brightness(e["pixels"], 0.4, seed=1),
    "random_contrast": lambda e: tf.image.random_contrast(e["pixels"], 0.2, 1.5, seed=1),
    "random_crop": lambda e: tf.image.random_crop(e["pixels"], [3, 4, 3], seed=1),
    "random_flip_left_right": lambda e: tf.image.random_flip_left_right(e["pixels"], seed=1),
    "random_flip_up_down": lambda e: tf.image.random_flip_up_down(e["pixels"], seed=1),
    "random_hue": lambda e: tf.image.random_hue(e["pixels"], 0.4, seed=1),
    "random_jpeg_quality": lambda e: tf.image.random_jpeg_quality(e["pixels"], 20, 90, seed=1),
    "random_saturation": lambda e: tf.image.random_saturation(e["pixels"], 0.2, 2.5, seed=1),
    "resize": lambda e: tf.image.resize(e["pixels"], [5, 7]),
    "resize_with_crop_or_pad": lambda e: tf.image.resize_with_crop_or_pad(e["pixels"], 5, 17),
    "resize_with_pad": lambda e: tf.image.resize_with_pad(e["pixels"], 5, 9),
    "rgb_to_grayscale": lambda e: tf.image.rgb_to_grayscale(e["pixels"]),
    "rgb_to_hsv": lambda e: tf.image.rgb_to_hsv(e["floats"]),
    "rgb_to_yiq": lambda e: tf.image.rgb_to_yiq(e["floats"]),
    "rgb_to_yuv": lambda e: tf.image.rgb_to_yuv(e["floats"]),
    "rot90": lambda e: tf.image.rot90(e["pixels"]),
    "sample_distorted_bounding_box": lambda e: tf.image.sample_distorted_bounding_box(
        e["size"], e["many"], seed=1
    ),
    "stateless_random_brightness": lambda e: tf.image.stateless_random_brightness(
        e["pixels"], 0.4, e["key"]
    ),
    "stateless_random_contrast": lambda e: tf.image.stateless_random_contrast(
        e["pixels"], 0.2, 1.5, SEED
    ),
    "stateless_random_crop": lambda e: tf.image.stateless_random_crop(e["pixels"], [3, 4, 3], SEED),
    "stateless_random_flip_left_right": lambda e: tf.image.stateless_random_flip_left_right(
        e["pixels"], SEED
    ),
    "stateless_random_flip_up_down": lambda e: tf.image.stateless_random_flip_up_down(
        e["pixels"], SEED
    ),
    "stateless_random_hue": lambda e: tf.image.stateless_random_hue(e["pixels"], 0.4, SEED),
    "stateless_random_jpeg_quality": lambda e: tf.image.stateless_random_jpeg_quality(
        e["pixels"], 20, 90, SEED
    ),
    "stateless_random_saturation": lambda e: tf.image.stateless_random_saturation(
        e["pixels"], 0.2, 2.5, SEED
    ),
    "stateless_sample_distorted_bounding_box": lambda e: (
        tf.image.stateless_sample_distorted_bounding_box(e["size"], e["many"], SEED)
    ),
    "transpose": lambda e: tf.image.transpose(e["pixels"]),
    "yiq_to_rgb": lambda e: tf.image.yiq_to_rgb(e["floats"]),
    "yuv_to_rgb": lambda e: tf.image.yuv_to_rgb(e["floats"]),
}
BY_JAX = {
    "crop_and_resize": lambda e: tf.image.crop_and_resize(
        e["floats"][None], e["boxes"][:1], e["one"], [4, 4]
    ),
    "extract_glimpse": lambda e: tf.image.extract_glimpse(
        e["floats"][None], [3, 4], [[0.1, 0.2]], noise="zero"
    ),
    "extract_patches": lambda e: tf.image.extract_patches(
        e["pixels"][None], [1, 2, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"
    ),
    "image_gradients": lambda e: tf.image.image_gradients(e["floats"][None]),
    "psnr": lambda e: tf.image.psnr(e["floats"], e["others"], 1.0),
    "sobel_edges": lambda e: tf.image.sobel_edges(e["floats"][None]),
    "ssim": lambda e: tf.image.ssim(e["floats"], e["others"], 1.0),
    "ssim_multiscale": lambda e: tf.image.ssim_multiscale(
        e["floats"], e["others"], 1.0, power_factors=[0.5, 0.5], filter_size=3
    ),
    "total_variation": lambda e: tf.image.total_variation(e["pixels"]),
}
# How many boxes are kept follows from the values.
PER_ELEMENT = {
    "combined_non_max_suppression": lambda e: tf.image.combined_non_max_suppression(
        e["boxes"][None, :, None], e["scores"][None, :, None], 2, 3
    ),
    "non_max_suppression": lambda e: tf.image.non_max_suppression(e["boxes"], e["scores"], 2),
    "non_max_suppression_overlaps": lambda e: tf.image.non_max_suppression_overlaps(
        e["boxes"], e["scores"], 2
    ),
    "non_max_suppression_padded": lambda e: tf.image.non_max_suppression_padded(
        e["boxes"], e["scores"], 3, pad_to_max_output_size=True
    ),
    "non_max_suppression_with_scores": lambda e: tf.image.non_max_suppression_with_scores(
        e["boxes"], e["scores"], 4, soft_nms_sigma=0.5
    ),
}
STRINGS = {
    "as_string": lambda e: tf.strings.as_string(e["points"]),
    "bytes_split": lambda e: tf.strings.bytes_split(e["text"]),
    "format": lambda e: tf.strings.format("{} is", e["points"]),
    "join": lambda e: tf.strings.join([e["text"], e["number"]], "-"),
    "length": lambda e: tf.strings.length(e["text"], "UTF8_CHAR"),
    "lower": lambda e: tf.strings.lower(e["text"], "utf-8"),
    "ngrams": lambda e: tf.strings.ngrams(e["words"], 2),
    "reduce_join": lambda e: tf.strings.reduce_join(e["words"]),
    "regex_full_match": lambda e: tf.strings.regex_full_match(e["text"], ".*o.*"),
    "regex_replace": lambda e: tf.strings.regex_replace(e["text"], "[aeiou]", "_"),
    "split": lambda e: tf.strings.split(e["text"]),
    "strip": lambda e: tf.strings.strip(e["text"]),
    "substr": lambda e: tf.strings.substr(e["text"], 1, 3, "UTF8_CHAR"),
    "to_hash_bucket": lambda e: tf.strings.to_hash_bucket(e["text"], 100),
    "to_hash_bucket_fast": lambda e: tf.strings.to_hash_bucket_fast(e["text"], 100),
    "to_hash_bucket_strong": lambda e: tf.strings.to_hash_bucket_strong(e["text"], 100, [1, 2]),
    "to_number": lambda e: tf.strings.to_number(e["number"]),
    "unicode_decode": lambda e: tf.strings.unicode_decode(e["text"], "UTF-8"),
    "unicode_decode_with_offsets": lambda e: tf.strings.unicode_decode_with_offsets(
        e["text"], "UTF-8"
    ),
    "unicode_encode": lambda e: tf.strings.unicode_encode(e["points"], "UTF-8"),
    "unicode_script": lambda e: tf.strings.unicode_script(e["points"]),
    "unicode_split": lambda e: tf.strings.unicode_split(e["text"], "UTF-8"),
    "unicode_split_with_offsets": lambda e: tf.strings.unicode_split_with_offsets(
        e["text"], "UTF-8"
    ),
    "unicode_transcode": lambda e: tf.strings.unicode_transcode(e["text"], "UTF-8", "UTF-16-BE"),
    "unsorted_segment_join": lambda e: tf.strings.unsorted_segment_join(e["words"], [0, 1], 2),
    "upper": lambda e: tf.strings.upper(e["text"], "utf-8"),
}
OF_STRINGS = {name: STRINGS[name] for name in STRINGS if name in tf.strings.__all__}
# Their results depend on values, or on how tensors are printed.
STRINGS_PER_ELEMENT = {
    "format",
    "ngrams",
    "unicode_encode",
    "unicode_script",
    "unsorted_segment_join",
}


def part(calls, start, stop=None):
    return dict(list(calls.items())[start:stop])


# A function may call some 50 kernels before it runs per element.
TRACED = {
    "first kernels": part(KERNELS, 0, 28),
    "last kernels": part(KERNELS, 28),
    "JAX": BY_JAX,
    "strings": {n: OF_STRINGS[n] for n in OF_STRINGS if n not in STRINGS_PER_ELEMENT},
}
UNTRACED = {
    "boxes": PER_ELEMENT,
    "other strings": {n: OF_STRINGS[n] for n in OF_STRINGS if n in STRINGS_PER_ELEMENT},
}


def elements():
    columns = {
        **COLUMNS,
        "batch": COLUMNS["floats"][:, None],
        "many": BOXES[:, None],
        "grey": PIXELS[..., :1],
    }
    return tf.data.Dataset.from_tensor_slices(columns)


def test_every_function_is_called():
    classes = {"ResizeMethod"}
    assert {*KERNELS, *BY_JAX, *PER_ELEMENT} == {*tf.image.__all__} - classes
    assert set(OF_STRINGS) == set(tf.strings.__all__)


@pytest.mark.parametrize("group", [*TRACED, *UNTRACED])
def test_a_map_gives_the_same_traced_and_per_element(group):
    calls = {**TRACED, **UNTRACED}[group]

    def compute(element):
        return {name: call(element) for name, call in calls.items()}

    mapped = elements().map(compute)
    assert plan_of(mapped).function.is_vectorised == (group in TRACED)
    for fast, slow in zip(mapped, elements().map(compute, vectorize=False), strict=True):
        for name in calls:
            compare(name, fast[name], slow[name])


def compare(name, fast, slow):
    assert type(fast) is type(slow), name
    if isinstance(fast, tuple):
        for one, other in zip(fast, slow, strict=True):
            compare(name, one, other)
    elif isinstance(fast, tf.RaggedTensor):
        assert fast.to_list() == slow.to_list(), name
    else:
        assert fast.dtype == slow.dtype, name
        if fast.dtype == tf.string:
            assert fast.tolist() == slow.tolist(), name
        else:
            np.testing.assert_allclose(fast, slow, rtol=2e-5, atol=1e-5, err_msg=name)
