"""Reads a dataset that two workers share, to its end or nearly so, and comes to an end itself.

Usage: ending.py POLICY FOLDER end|exit|error|interrupt
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import evenfeed as tf

Dataset = tf.data.Dataset
Policy = tf.data.experimental.AutoShardPolicy


def dataset(policy: str, folder: Path) -> Any:
    """Return a dataset for one of the policies under which workers exchange information."""
    files = sorted(map(str, folder.glob("*.tfrecord")))
    hint = tf.data.experimental.SHARD_HINT
    numbers = tf.TensorSpec([], tf.int64)
    made: dict[str, Any] = {
        "AUTO": lambda: tf.data.TFRecordDataset(files),
        "FILE": lambda: tf.data.TFRecordDataset(files).shuffle(10),
        "DATA": lambda: Dataset.range(40).shuffle(40),
        "HINT": lambda: Dataset.range(40).shard(hint, hint),
        "OFF": lambda: Dataset.range(40).filter(lambda x: x % 2 == 0),
        "OFF, generator": lambda: Dataset.from_generator(
            lambda: iter(np.arange(40)), output_signature=numbers
        ),
    }
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = Policy[policy.partition(",")[0]]
    return made[policy]().batch(4).with_options(options)


def main(policy: str, folder: str, how: str) -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id
    out = open(Path(folder, f"worker-{worker}"), "w")  # noqa: SIM115 - Python itself closes it, at the very end
    globals()["out"] = out
    steps = iter(strategy.experimental_distribute_dataset(dataset(policy, Path(folder))))
    globals()["steps"] = steps
    for number, _ in enumerate(steps):
        out.write(f"step {number}\n")
        if how != "end" and number == 2:
            break
    out.write("all\n")
    if how == "exit":
        sys.exit(3)
    if how == "error":
        raise KeyError("no more")
    if how == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(20)


if __name__ == "__main__":
    main(*sys.argv[1:])
