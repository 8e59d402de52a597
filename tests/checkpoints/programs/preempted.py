"""Trains until it is told to stop, on one worker or several. Prints each step with this worker's rows.

The weights are the sum of all rows so far, so that a row that is lost or trained on twice shows.
"""

import json
import sys
import time

import jax.numpy as jnp
import numpy as np

import evenfeed as tf

folder, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
dataset = tf.data.Dataset.range(400).shuffle(400, seed=5).batch(4)
iterator = iter(strategy.experimental_distribute_dataset(dataset))
with strategy.scope():
    total = tf.Variable(0, aggregation=tf.VariableAggregation.SUM)
checkpoint = tf.train.Checkpoint(total=total, data=iterator)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(
    strategy.cluster_resolver, checkpoint, folder
)


@tf.function
def train(rows):
    strategy.run(lambda x: total.assign_add(jnp.sum(x).astype(jnp.int32)), args=(rows,))


def train_step():
    rows = next(iterator)
    train(rows)
    time.sleep(seconds)
    parts = strategy.experimental_local_results(rows)
    return np.concatenate([np.asarray(part) for part in parts]).tolist()


while handler.total_run_calls < steps:
    step = handler.total_run_calls
    rows = handler.run(train_step)
    sys.stdout.write("step " + json.dumps([step, rows, int(total.read_value())]) + "\n")
    sys.stdout.flush()
