"""Trains a small model, saves its place, and writes down every step. The test kills it at any moment and starts it again.

Usage: killed_training.py FOLDER START data|lanes

With "data", all workers share the rows of each batch, which come from a process through shared memory, and worker 0
replaces a file of JSON. With "lanes", each worker reads
its own files, behind a filter, and a CheckpointManager saves.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from wide_rows import widened

import evenfeed as tf

ROWS, BATCH, EPOCHS, LANES = 96, 12, 12, 6
SAVE_EVERY = 5
WIDTH = 4


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def row_ids(folder: Path) -> Any:
    """Return all rows, in another order in each pass. A process widens them, so that they need shared memory."""
    rows = tf.data.Dataset.range(ROWS).shuffle(ROWS, seed=7)
    wide = rows.map(widened, 1, processes=True)
    return wide.map(lambda row: row[0]).batch(BATCH).repeat(EPOCHS)


def filtered_lines(folder: Path) -> Any:
    """Return the rows of one file for each lane, with some lines to drop between them."""
    paths = [str(folder.parent / f"lines-{lane}.txt") for lane in range(LANES)]
    lines = tf.data.TextLineDataset(paths)
    numbers = lines.map(lambda line: tf.strings.to_number(line, tf.int64))
    kept = numbers.filter(lambda number: number >= 0)
    return kept.shuffle(8, seed=7).repeat(EPOCHS).batch(BATCH)


def saver_of_files(folder: Path, kept: dict[str, Any], place: int) -> tuple[Any, Any]:
    """Return a function that restores, and one that saves: worker 0 replaces a file at once."""
    path = folder / "saved.json"

    def restore() -> None:
        if path.exists():
            found = json.loads(path.read_text())
            kept["step"].assign(found["step"])
            kept["weights"].assign([float.fromhex(value) for value in found["weights"]])
            kept["data"].set_state(found["data"])

    def save(dies: bool) -> None:
        position = kept["data"].get_state()  # on all workers: they exchange it
        if place:
            return
        values = [float(value).hex() for value in kept["weights"].numpy()]
        content = json.dumps({"step": int(kept["step"]), "weights": values, "data": position})
        part = path.with_suffix(".part")
        with part.open("w") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            if dies:
                die()
            file.write(content[len(content) // 2 :])
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    return restore, save


def saver_of_checkpoints(folder: Path, kept: dict[str, Any], place: int) -> tuple[Any, Any]:
    """Return a function that restores, and one that saves with a CheckpointManager, on all workers."""
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(**kept), str(folder / "saved"), 2)

    def save(dies: bool) -> None:
        if dies and place == 0:
            threading.Timer(random.uniform(0.0, 0.1), die).start()
        manager.save()
        if dies and place == 0:
            time.sleep(1.0)

    return manager.restore_or_initialize, save


WAYS: dict[str, tuple[Callable[..., Any], Any, Callable[..., Any]]] = {
    "data": (row_ids, tf.data.experimental.AutoShardPolicy.DATA, saver_of_files),
    "lanes": (filtered_lines, tf.data.experimental.AutoShardPolicy.LANES, saver_of_checkpoints),
}


def main(folder: Path, start: str, way: str) -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    place = strategy.cluster_resolver.task_id or 0
    make, policy, saver = WAYS[way]
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    if way == "lanes":
        options.experimental_distribute.num_lanes = LANES
    with strategy.scope():
        weights = tf.Variable([0.0] * WIDTH, aggregation=tf.VariableAggregation.MEAN)
        count = tf.Variable(0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)

    def step(ids: Any) -> Any:
        x = jnp.stack([jnp.sin(ids * (k + 1.0)) for k in range(WIDTH)], axis=1)
        error = x @ weights.value() - jnp.cos(ids * 1.0)
        parts = jnp.concatenate([x.T @ error, jnp.sum(error**2)[None]])
        total = tf.distribute.get_replica_context().all_reduce("sum", parts) / BATCH
        weights.assign_sub(0.1 * total[:WIDTH])
        return total[WIDTH]

    run = tf.function(lambda batch: strategy.run(step, args=(batch,)))
    dataset = make(folder).with_options(options)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    kept = {"weights": weights, "step": count, "data": iterator}
    restore, save = saver(folder, kept, place)
    restore()
    number = int(count)
    dies = (folder / f"die-{start}").exists()
    workers = strategy.cluster_resolver.cluster_spec().num_tasks("worker")
    with (folder / f"log-{start}-{workers}-{place}").open("w") as log:
        for batch in iterator:
            loss = strategy.experimental_local_results(run(batch))[0]
            parts = strategy.experimental_local_results(batch)
            ids = np.concatenate([np.asarray(part) for part in parts]).tolist()
            log.write(json.dumps({"step": number, "ids": ids, "loss": float(loss)}) + "\n")
            log.flush()
            number += 1
            if number % SAVE_EVERY == 0:
                count.assign(number)
                save(dies and number > SAVE_EVERY)
            time.sleep(0.01)
    (folder / f"done-{place}").touch()


main(Path(sys.argv[1]), *sys.argv[2:])
