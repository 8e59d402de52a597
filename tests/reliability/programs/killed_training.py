"""Trains a small model, saves its place, and writes down every step. The test kills it at any moment and starts it again.

Usage: killed_training.py FOLDER START
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import evenfeed as tf

ROWS, BATCH, EPOCHS = 96, 12, 12
SAVE_EVERY = 5
WIDTH = 4


def inputs() -> Any:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    ids = tf.data.Dataset.range(ROWS).shuffle(ROWS, seed=7).batch(BATCH).repeat(EPOCHS)
    return ids.with_options(options)


def save(path: Path, content: str, *, dies: bool) -> None:
    """Replace a file at once: a kill leaves the old one or the new one."""
    part = path.with_suffix(".part")
    with part.open("w") as file:
        file.write(content[: len(content) // 2])
        file.flush()
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        file.write(content[len(content) // 2 :])
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def main(folder: Path, start: str) -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    place = strategy.cluster_resolver.task_id or 0
    with strategy.scope():
        weights = tf.Variable([0.0] * WIDTH, aggregation=tf.VariableAggregation.MEAN)

    def step(ids: Any) -> Any:
        x = jnp.stack([jnp.sin(ids * (k + 1.0)) for k in range(WIDTH)], axis=1)
        error = x @ weights.value() - jnp.cos(ids * 1.0)
        parts = jnp.concatenate([x.T @ error, jnp.sum(error**2)[None]])
        total = tf.distribute.get_replica_context().all_reduce("sum", parts) / BATCH
        weights.assign_sub(0.1 * total[:WIDTH])
        return total[WIDTH]

    run = tf.function(lambda batch: strategy.run(step, args=(batch,)))
    iterator = iter(strategy.experimental_distribute_dataset(inputs()))
    saved, number = folder / "saved.json", 0
    if saved.exists():
        found = json.loads(saved.read_text())
        number = found["step"]
        weights.assign([float.fromhex(value) for value in found["weights"]])
        iterator.set_state(found["state"])
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
            if number % SAVE_EVERY == 0 and place == 0:
                values = [float(value).hex() for value in weights.numpy()]
                content = {"step": number, "weights": values, "state": iterator.get_state()}
                save(saved, json.dumps(content), dies=dies and number > SAVE_EVERY)
            time.sleep(0.01)
    (folder / f"done-{place}").touch()


main(Path(sys.argv[1]), sys.argv[2])
