"""Images: TensorFlow's `tf.image`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.images.boxes import draw_bounding_boxes
from evenfeed.images.colour_spaces import (
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    hsv_to_rgb,
    rgb_to_hsv,
    rgb_to_yiq,
    rgb_to_yuv,
    yiq_to_rgb,
    yuv_to_rgb,
)
from evenfeed.images.colours import convert_image_dtype, grayscale_to_rgb, rgb_to_grayscale
from evenfeed.images.decoding import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    extract_jpeg_shape,
    is_jpeg,
)
from evenfeed.images.distorted_boxes import (
    sample_distorted_bounding_box,
    stateless_sample_distorted_bounding_box,
)
from evenfeed.images.encoding import encode_jpeg, encode_png
from evenfeed.images.geometry import (
    central_crop,
    crop_to_bounding_box,
    flip_left_right,
    flip_up_down,
    pad_to_bounding_box,
    resize_with_crop_or_pad,
)
from evenfeed.images.jpeg_quality import adjust_jpeg_quality
from evenfeed.images.levels import (
    adjust_brightness,
    adjust_contrast,
    per_image_standardization,
)
from evenfeed.images.random_colours import (
    random_brightness,
    random_contrast,
    random_hue,
    random_jpeg_quality,
    random_saturation,
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_hue,
    stateless_random_jpeg_quality,
    stateless_random_saturation,
)
from evenfeed.images.random_ops import (
    random_crop,
    random_flip_left_right,
    random_flip_up_down,
    stateless_random_crop,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
)
from evenfeed.images.resizing import ResizeMethod, resize
from evenfeed.images.rotating import resize_with_pad, rot90, transpose
from evenfeed.images.suppression import (
    combined_non_max_suppression,
    non_max_suppression,
    non_max_suppression_overlaps,
    non_max_suppression_padded,
    non_max_suppression_with_scores,
)
from evenfeed.tensors.vision.edges import image_gradients, sobel_edges, total_variation
from evenfeed.tensors.vision.patches import crop_and_resize, extract_glimpse, extract_patches
from evenfeed.tensors.vision.similarity import psnr, ssim, ssim_multiscale

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "central_crop",
    "combined_non_max_suppression",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "draw_bounding_boxes",
    "encode_jpeg",
    "encode_png",
    "extract_glimpse",
    "extract_jpeg_shape",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "image_gradients",
    "is_jpeg",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
    "pad_to_bounding_box",
    "per_image_standardization",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "rot90",
    "sample_distorted_bounding_box",
    "sobel_edges",
    "ssim",
    "ssim_multiscale",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_crop",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_hue",
    "stateless_random_jpeg_quality",
    "stateless_random_saturation",
    "stateless_sample_distorted_bounding_box",
    "total_variation",
    "transpose",
    "yiq_to_rgb",
    "yuv_to_rgb",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
