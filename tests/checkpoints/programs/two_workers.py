"""Saves and restores on all workers together, with Checkpoint and with Orbax's own CheckpointManager.

Each worker prints what it found.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

import evenfeed as tf
from evenfeed.train.experimental import RestoreIterator, SaveIterator

folder = sys.argv[1]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
worker = strategy.cluster_resolver.task_id
dataset = tf.data.Dataset.range(48).shuffle(48, seed=5).batch(8)
steps = strategy.experimental_distribute_dataset(dataset)


def rows(step: Any) -> list[int]:
    """Return this worker's rows of a step."""
    return np.concatenate(
        [np.asarray(part) for part in strategy.experimental_local_results(step)]
    ).tolist()


def objects() -> dict[str, Any]:
    """Return what is saved, with its first values."""
    with strategy.scope():
        mirrored = tf.Variable(jnp.zeros(3))
        total = tf.Variable(
            0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    sharded = jax.make_array_from_callback(
        (8,), strategy.sharding("replica"), lambda index: np.zeros(8, np.float32)[index]
    )
    plain = tf.Variable(float(worker))  # worker 0's value is saved
    return {"mirrored": mirrored, "total": total, "x": sharded, "plain": plain, "data": iter(steps)}


def raised(call: Any) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - printed
        return f"{type(error).__name__}: {error}"
    return ""


made = objects()
checkpoint = tf.train.Checkpoint(**made)
manager = tf.train.CheckpointManager(checkpoint, f"{folder}/made", max_to_keep=1)
next(made["data"])
strategy.run(lambda: made["total"].assign_add(jnp.array(3)))
made["mirrored"].assign(jnp.arange(3.0))
checkpoint.x = jax.jit(lambda x: x + 4)(made["x"])
manager.save(options=tf.train.CheckpointOptions(enable_async=True))
strategy.run(lambda: made["total"].assign_add(jnp.array(1)))
path = manager.save()
listed = sorted(os.listdir(f"{folder}/made"))  # the same on all workers
following = [rows(step) for step in made["data"]]

again = objects()
restored = tf.train.Checkpoint(**again)
restored.restore(tf.train.latest_checkpoint(f"{folder}/made")).assert_consumed()
found = {
    "mirrored": [copy.tolist() for copy in strategy.experimental_local_results(again["mirrored"])],
    "total": int(again["total"].read_value()),
    "x": [shard.data.tolist() for shard in restored.x.addressable_shards],
    "plain": float(again["plain"]),
    "goes on": [rows(step) for step in again["data"]] == following,
    "steps": len(following),
}

# The other way round: Orbax's manager saves the position in the same step as the model.
iterator = iter(steps)
next(iterator)
with ocp.CheckpointManager(f"{folder}/orbax") as theirs:
    theirs.save(
        1,
        args=ocp.args.Composite(
            model=ocp.args.StandardSave({"w": restored.x}), data=SaveIterator(iterator)
        ),
    )
    after = rows(next(iterator))  # Orbax writes in the background
    theirs.wait_until_finished()
    fresh = iter(steps)
    parts = theirs.restore(1, args=ocp.args.Composite(data=RestoreIterator(fresh)))
    resumed = rows(next(parts.data))


class Own(tf.train.experimental.PythonState):
    """A state that is different on each worker."""

    def serialize(self) -> str:
        return str(worker)

    def deserialize(self, string_value: str) -> None:
        self.found = string_value


own = tf.train.Checkpoint(own=Own())
for _ in range(3):  # each replaces the one before
    own.write(f"{folder}/own")
own.read(f"{folder}/own").assert_consumed()


def state_of_one() -> str:
    """Return what worker 0 gets if it asks for a position that all have to tell, and worker 1 does not ask."""
    impatient = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(timeout_seconds=4)
    )
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    filtered = dataset.unbatch().filter(lambda x: x >= 0).batch(8).with_options(options)
    iterator = iter(impatient.experimental_distribute_dataset(filtered))
    next(iterator)
    end = time.monotonic() + 60
    told = Path(folder) / "told"
    if worker == 0:
        text = raised(iterator.get_state)
        told.touch()
        return text
    while not told.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return ""


seen = {
    "following": following,
    "own": own.own.found,
    "found": found,
    "path": os.path.basename(path or ""),
    "listed": listed,
    "orbax": parts.data is fresh and resumed == after,
    "paths": raised(lambda: checkpoint.write(f"{folder}/of-{worker}")),
    "keys": raised(
        lambda: tf.train.Checkpoint(**{f"v{worker}": tf.Variable(1)}).write(f"{folder}/keys")
    ),
    "state of one": state_of_one(),
}
sys.stdout.write(f"seen {json.dumps(seen)}\n")
