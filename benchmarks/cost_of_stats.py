"""Measures what `tf.experimental.enable_stats()` costs a training loop: at most 2 % of its time.

Each job reads batches of 256 rows and computes a step on each, of about a millisecond: two small layers. Passes that are measured
and passes that are not take turns in one process, so that both meet the same machine. The median of the ratios of their
processor times counts. The last job is the worst case, and counts for nothing: Python code for single rows, and no step.
The number of rounds may be given as an argument.
"""

import os
import sys
import time
from collections.abc import Callable
from statistics import median

os.environ["OMP_NUM_THREADS"] = "1"  # threads that wait for each other take processor time, too

import numpy as np

import evenfeed as tf

LIMIT = 1.02
ROWS = np.random.default_rng(0).random((100_000, 32), dtype=np.float32)
LAYERS = [
    np.random.default_rng(1).random(shape, dtype=np.float32) for shape in ((32, 256), (256, 64))
]
SPEC = tf.TensorSpec((32,), tf.float32)


def python(row):
    """Run as Python code for each element."""
    return np.asarray(row) * np.float32(float(row[0]))


def shuffled() -> tf.data.Dataset:
    """Shuffle, map and batch rows."""
    rows = tf.data.Dataset.from_tensor_slices(ROWS).shuffle(len(ROWS), seed=1)
    return rows.map(lambda x: x * 2 + 1).batch(256).prefetch(2)


def called() -> tf.data.Dataset:
    """Call Python code for each row."""
    return tf.data.Dataset.from_tensor_slices(ROWS[:10_000]).map(python)


def generated() -> tf.data.Dataset:
    """Read a generator."""
    rows = tf.data.Dataset.from_generator(lambda: iter(ROWS[:20_000]), output_signature=SPEC)
    return rows.shuffle(1000, seed=1).batch(256).prefetch(2)


def step(batch) -> None:
    """Compute as two small layers would."""
    for layer in LAYERS:
        batch = np.maximum(np.asarray(batch) @ layer, 0)


JOBS: dict[str, tuple[Callable[[], tf.data.Dataset], Callable]] = {
    "rows: shuffle, map, batch": (shuffled, step),
    "Python code for each row: batch": (lambda: called().batch(256).prefetch(2), step),
    "a generator: shuffle 1000, batch": (generated, step),
    "worst case: Python code, no batch, no step": (called, lambda _: None),
}


def main() -> int:
    """Print the ratio of each job, and return 1 if the mean of all but the worst case is above the limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    found = []
    for name, (make, compute) in JOBS.items():
        dataset = make()
        seconds(dataset, compute, measured=False)  # compiles
        pairs = [both(dataset, compute, turn) for turn in range(rounds)]
        found.append(median(on / off for on, off in pairs))
        print(f"{name:45} {found[-1]:.3f}", flush=True)
    mean = sum(found[:-1]) / len(found[:-1])
    print(f"measured / not measured, mean: {mean:.3f} (at most {LIMIT})")
    return int(mean > LIMIT)


def both(dataset: tf.data.Dataset, compute: Callable, turn: int) -> tuple[float, float]:
    """Return the processor time of a pass that is measured, and of one that is not."""
    order = (True, False) if turn % 2 else (False, True)
    found = {measured: seconds(dataset, compute, measured=measured) for measured in order}
    return found[True], found[False]


def seconds(dataset: tf.data.Dataset, compute: Callable, *, measured: bool) -> float:
    """Return the processor time of a pass."""
    tf.experimental.enable_stats(measured)
    iterator = iter(dataset)
    tf.experimental.enable_stats(False)
    start = time.process_time()
    for batch in iterator:
        compute(batch)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
