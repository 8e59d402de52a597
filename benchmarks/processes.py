"""Measures functions in processes: what two cores give for pure Python, and how fast big rows move.

The function does a fixed amount of pure Python, 1 ms or so. It runs in this process, in two threads, and
in one and two processes; two processes on two free cores are at best twice as fast as one. What the
machine itself gives is measured beside it, by the same work in two plain Python programs at once. Rows of
1 MB go to processes and back untouched; the bytes are counted once.
"""

import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

import evenfeed as tf

ROWS = 1500
WORK = 20_000
BIG_ROWS = 400
NUMBER = tf.TensorSpec([], tf.int64)

PLAIN = f"""
import time
def work():
    for _ in range({WORK}): pass
begin = time.perf_counter()
for _ in range({ROWS}): work()
print(time.perf_counter() - begin)
"""


def work(x: Any) -> Any:
    """Return the element after some Python."""
    for _ in range(WORK):
        pass
    return x


def same(x: Any) -> Any:
    """Return the element."""
    return x


def main() -> None:
    """Print rows per second for each way."""
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    alone, together = plain(1), plain(2)
    print(f"the machine: two programs do {together / alone:.2f} times the work of one")
    ways = {
        "in this process": {},
        "two threads": {"num_parallel_calls": 2},
        "one process": {"num_parallel_calls": 1, "processes": True},
        "two processes": {"num_parallel_calls": 2, "processes": True},
    }
    rates = {name: rate(tf.data.Dataset.range(ROWS), work, how) for name, how in ways.items()}
    for name, per_second in rates.items():
        times = per_second / rates["in this process"]
        print(f"{name:16} {per_second:8.0f} rows/s  {times:.2f} times")
    rows = np.ones((BIG_ROWS, 1 << 20), np.uint8)
    big = rate(tf.data.Dataset.from_tensor_slices(rows), same, ways["two processes"], rows[0])
    print(f"rows of 1 MB     {big:8.0f} rows/s  {big * (1 << 20) / 1e9:.2f} GB/s")


def plain(count: int) -> float:
    """Return how often a second the work is done by some Python programs at once."""
    begun = [
        subprocess.Popen([sys.executable, "-c", PLAIN], stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    return sum(ROWS / float(program.communicate()[0]) for program in begun)


def rate(source: tf.data.Dataset, call: Any, how: dict[str, Any], row: Any = None) -> float:
    """Return rows per second, once processes have started."""
    spec = NUMBER if row is None else tf.TensorSpec(row.shape, row.dtype)
    iterator = iter(source.map(call, vectorize=False, output_signature=spec, **how))
    for _ in range(8):
        next(iterator)
    begin = time.perf_counter()
    count = sum(1 for _ in iterator)
    return count / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
