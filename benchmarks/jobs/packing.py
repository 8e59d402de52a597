"""20 000 rows of about 400 tokens from memory, packed into sequences of 2048 tokens: first fit. Rates are in tokens."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

ROWS, LENGTH, BINS = 20_000, 2048, 64


def values() -> tuple[Any, Any]:
    """Return the tokens of all rows, and the length of each row."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(5.5, 1, ROWS).astype(np.int64), 1, LENGTH)
    return random.integers(1, 32_000, int(lengths.sum()), dtype=np.int32), lengths


def evenfeed(seconds: float) -> dict[str, float]:
    """Pack the rows of a ragged tensor."""
    import evenfeed as tf

    rows = tf.data.Dataset.from_tensor_slices(tf.RaggedTensor.from_row_lengths(*values()))
    return rate(rows.repeat().pack(LENGTH, num_bins=BINS), tokens_of, seconds)


def grain(seconds: float) -> dict[str, float]:
    """Write it as in Grain's documentation."""
    import grain.python as pygrain
    from grain.experimental import FirstFitPackIterDataset

    flat, lengths = values()
    rows = np.split(flat, np.cumsum(lengths)[:-1])
    source = pygrain.MapDataset.source(rows).repeat().map(lambda row: {"inputs": row})
    packed = FirstFitPackIterDataset(
        source.to_iter_dataset(), length_struct={"inputs": LENGTH}, num_packing_bins=BINS
    )
    return rate(packed, lambda row: np.count_nonzero(row["inputs_segment_ids"]), seconds)


def limit(seconds: float) -> dict[str, float]:
    """Copy the tokens with NumPy, without gaps, and count up to make segment ids and positions."""
    flat, lengths = values()
    count = len(flat) // LENGTH
    ends = np.cumsum(lengths)

    def found() -> Iterator[Any]:
        while True:
            ids = np.repeat(np.arange(ROWS, dtype=np.int32), lengths)
            starts = np.repeat((ends - lengths).astype(np.int32), lengths)
            positions = np.arange(len(flat), dtype=np.int32) - starts
            whole = [
                part[: count * LENGTH].reshape(count, LENGTH) for part in (flat, ids, positions)
            ]
            for row in range(count):
                yield [part[row].copy() for part in whole]

    return rate(found(), lambda _: LENGTH, seconds)


def tokens_of(row: Any) -> int:
    """Return the number of tokens in a packed row, without padding."""
    return np.count_nonzero(row[1])


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "Grain": grain}

if __name__ == "__main__":
    main(VARIANTS)
