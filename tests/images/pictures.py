"""Small images for the tests."""

import io

import numpy as np
from PIL import Image

import evenfeed as tf


def pixels(height=20, width=24, channels=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, channels), np.uint8)


def jpeg(height=20, width=24, channels=3, seed=0):
    return tf.io.encode_jpeg(pixels(height, width, channels, seed)).item()


def file_of(kind, image, **how):
    out = io.BytesIO()
    Image.fromarray(image).save(out, kind, **how)
    return out.getvalue()
