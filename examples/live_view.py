"""What does a program wait for? A page shows it while the program runs, and `stats()` tells it as data.

The page is at the address that this program prints, as long as it runs. For several workers, see
`evenfeed run --workers 2 --dashboard train.py`.
"""

import tempfile
import time
from pathlib import Path

import evenfeed as tf


def decode(number):
    """Take a millisecond, as decoding a small picture does."""
    time.sleep(0.001)
    return float(number)


def train(dataset: tf.data.Dataset) -> tf.data.Iterator:
    """Take all batches, with a training step of two milliseconds each."""
    iterator = iter(dataset)
    for _ in iterator:
        time.sleep(0.002)
    return iterator


def main() -> None:
    numbers = tf.data.Dataset.range(400).shuffle(400, seed=1)
    with tf.experimental.dashboard() as page:
        print(f"live view: {page.url}")
        slow = train(numbers.map(decode).batch(20).prefetch(2))
        fast = train(numbers.map(decode, num_parallel_calls=16).batch(20).prefetch(2))

    for name, iterator in (("one thread", slow), ("16 threads", fast)):
        stats = iterator.stats()
        waited = stats.waited_seconds / stats.seconds
        print(f"{name}: {stats.seconds:.2f} s, waited for data {waited:.0%} of the time")
    print(slow.stats().advice)

    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        tf.experimental.save_trace(trace)  # open it at https://ui.perfetto.dev
        print(f"a trace of {trace.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
