"""JPEG files of 320 x 256: decode, random crop of 224, flip, normalise, batches of 32, in two threads."""

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from PIL import Image
from timing import main, rate

FILES, BATCH, THREADS, SIZE = 256, 32, 2, 224
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
SPREAD = np.array([0.229, 0.224, 0.225], np.float32)


def files() -> list[bytes]:
    """Return smooth pictures with some noise: about 30 kB each, as photographs of that size have."""
    rng = np.random.default_rng(0)
    return [_file(rng) for _ in range(FILES)]


def _file(rng: np.random.Generator) -> bytes:
    coarse = Image.fromarray(rng.integers(0, 256, (20, 16, 3), np.uint8))
    smooth = np.asarray(coarse.resize((320, 256), Image.Resampling.BICUBIC), np.int16)
    noisy = np.clip(smooth + rng.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(noisy).save(out, "JPEG", quality=90)
    return out.getvalue()


def like_tensorflow(tf: Any, seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides; evenfeed runs the same lines."""

    def prepared(content: Any) -> Any:
        image = tf.io.decode_jpeg(content, channels=3)
        image = tf.image.random_crop(image, [SIZE, SIZE, 3])
        image = tf.image.random_flip_left_right(image)
        return (tf.cast(image, tf.float32) / 255.0 - MEAN) / SPREAD

    dataset = tf.data.Dataset.from_tensor_slices(files()).repeat()
    dataset = dataset.map(prepared, num_parallel_calls=THREADS).batch(BATCH).prefetch(1)
    return rate(dataset, len, seconds, step=4)


def evenfeed(seconds: float) -> dict[str, float]:
    """Run the same lines."""
    import evenfeed as tf

    return like_tensorflow(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Run the same lines, with as many threads for all of it."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    return like_tensorflow(tf, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Decode alone, in as many threads."""
    import simplejpeg

    contents = files()

    def batches(pool: ThreadPoolExecutor) -> Iterator[Any]:
        pieces = [contents[start : start + BATCH] for start in range(0, FILES, BATCH)]
        while True:
            yield from pool.map(lambda piece: [_decoded(one) for one in piece], pieces)

    def _decoded(content: bytes) -> Any:
        return simplejpeg.decode_jpeg(content, fastdct=True)

    with ThreadPoolExecutor(THREADS) as pool:
        return rate(batches(pool), len, seconds, step=4)


def torch_loader(seconds: float) -> dict[str, float]:
    """Write it with a DataLoader, Pillow and processes."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Files(Dataset):
        def __init__(self) -> None:
            self._files = files()

        def __len__(self) -> int:
            return 1 << 20

        def __getitem__(self, index: int) -> Any:
            image = np.asarray(Image.open(io.BytesIO(self._files[index % FILES])).convert("RGB"))
            top, left = (int(torch.randint(n - SIZE + 1, ())) for n in image.shape[:2])
            image = image[top : top + SIZE, left : left + SIZE]
            if torch.rand(()) < 0.5:
                image = image[:, ::-1]
            return torch.from_numpy((image.astype(np.float32) / 255.0 - MEAN) / SPREAD)

    return rate(DataLoader(Files(), batch_size=BATCH, num_workers=THREADS), len, seconds, step=4)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow, "torch": torch_loader}

if __name__ == "__main__":
    main(VARIANTS)
