"""Decode images, crop and mirror them at random, and batch them: an ImageNet pipeline on small pictures."""

import tempfile
from pathlib import Path

import numpy as np

import evenfeed as tf

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
SPREAD = np.array([0.229, 0.224, 0.225], np.float32)


def prepared(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.random_crop(image, [32, 32, 3], seed=1)
    image = tf.image.random_flip_left_right(image)
    return (tf.cast(image, tf.float32) / 255.0 - MEAN) / SPREAD


with tempfile.TemporaryDirectory() as folder:
    rng = np.random.default_rng(0)
    for number in range(10):
        picture = rng.integers(0, 256, (40 + number, 48, 3), np.uint8)  # each of another height
        Path(folder, f"{number}.jpg").write_bytes(tf.io.encode_jpeg(picture).item())

    files = tf.data.Dataset.list_files(f"{folder}/*.jpg", seed=1)
    batches = files.map(prepared, num_parallel_calls=tf.data.AUTOTUNE).batch(4).prefetch(1)
    for batch in batches:
        print(batch.shape, batch.dtype, f"mean {batch.mean():.2f}")
    print(batches.explain())
