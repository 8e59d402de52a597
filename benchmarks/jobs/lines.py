"""A million lines of text in four files, in batches of 1024, in a plain loop."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import main, rate

FILES, LINES, BATCH = 4, 250_000, 1024


def written(folder: str) -> list[str]:
    """Write the files, and return their names."""
    names = [f"{folder}/{number}.txt" for number in range(FILES)]
    for name in names:
        lines = (f"line number {number} with some text in it\n" for number in range(LINES))
        Path(name).write_text("".join(lines))
    return names


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    with tempfile.TemporaryDirectory() as folder:
        lines = tf.data.TextLineDataset(written(folder)).batch(BATCH).repeat()
        return rate(lines, len, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        lines = tf.data.TextLineDataset(written(folder)).batch(BATCH).repeat()
        return rate(lines, len, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Read each file whole, and cut it once."""

    def batches(names: list[str]) -> Iterator[Any]:
        while True:
            for name in names:
                lines = np.array(Path(name).read_bytes().split(b"\n")[:-1], object)
                yield from (lines[start : start + BATCH] for start in range(0, LINES, BATCH))

    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(folder)), len, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
