"""Trains for many steps on files, and measures memory, threads and open files on the way.

Usage: python -m tests.reliability.long_run [STEPS]
"""

import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.processes import wait_until

import evenfeed as tf

PARTS = 10
FILES, ROWS, BATCH = 4, 512, 16  # a pass has 128 steps
PAGE = os.sysconf("SC_PAGE_SIZE")


class Use(NamedTuple):
    """What the process uses after some steps."""

    step: int
    megabytes: float
    threads: int
    files: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"step {self.step:>9,}: {self.megabytes:7.1f} MB, {self.threads} threads, {self.files} open files, "
            f"{self.seconds:6.0f} s"
        )


def used(step: int, begin: float) -> Use:
    """Measure this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    tasks, files = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    return Use(step, pages * PAGE / 2**20, tasks, files, time.monotonic() - begin)


def parsed(record: Any) -> Any:
    found = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([4], tf.float32)})
    return found["x"]


def inputs(folder: Path) -> Any:
    """Return endless batches: records, parsed, shuffled in another order in each pass."""
    paths = []
    for number in range(FILES):
        paths.append(str(folder / f"{number}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for row in range(ROWS):
                values = np.arange(4, dtype=np.float32) + row
                feature = tf.train.Feature(float_list=tf.train.FloatList(value=values.tolist()))
                features = tf.train.Features(feature={"x": feature})
                writer.write(tf.train.Example(features=features).SerializeToString())
    records = tf.data.TFRecordDataset(paths, num_parallel_reads=2)
    return records.map(parsed).shuffle(256, seed=1).batch(BATCH).repeat().prefetch(2)


def train(folder: Path, steps: int, parts: int = PARTS) -> Iterator[Use]:
    """Train, save the position now and then, and yield what the process uses after each part, while nothing reads ahead."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    step = tf.function(lambda x: strategy.run(lambda part: total.assign(part[0, 0]), args=(x,)))
    distributed = strategy.experimental_distribute_dataset(inputs(folder))
    iterator, begin = iter(distributed), time.monotonic()
    for number in range(1, steps + 1):
        step(next(iterator))
        measures = number % (steps // parts) == 0
        if number % 300 == 0 or measures:
            state = json.dumps(iterator.get_state())
            del iterator  # in the middle of a pass
            if measures:
                gc.collect()
                wait_until(lambda: not reading_threads(), 30)
                yield used(number, begin)
            iterator = iter(distributed)
            iterator.set_state(json.loads(state))


def reading_threads() -> list[str]:
    """Return the names of threads that work for an iterator."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("evenfeed")]


def check_flat(uses: list[Use], megabytes: float) -> None:
    """Raise if the second half of the run used more than the first."""
    middle = uses[len(uses) // 2]
    assert uses[-1].megabytes < middle.megabytes + megabytes, uses
    assert uses[-1].threads <= middle.threads, uses
    assert uses[-1].files <= middle.files, uses


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    uses: list[Use] = []
    with tempfile.TemporaryDirectory() as folder:
        for use in train(Path(folder), steps):
            uses.append(use)
            sys.stdout.write(f"{use}\n")
            sys.stdout.flush()
    check_flat(uses, megabytes=8)
    sys.stdout.write(f"flat after {steps:,} steps\n")


if __name__ == "__main__":
    main()
