"""Saves on two workers at every step, until one of them is killed. Prints how it ended."""

import sys

import jax.numpy as jnp

import evenfeed as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
dataset = tf.data.Dataset.range(10**6).batch(4)
iterator = iter(strategy.experimental_distribute_dataset(dataset))
with strategy.scope():
    total = tf.Variable(jnp.zeros(100_000), aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
checkpoint = tf.train.Checkpoint(total=total, data=iterator)
manager = tf.train.CheckpointManager(checkpoint, sys.argv[1], max_to_keep=2)
try:
    while True:
        next(iterator)
        strategy.run(lambda: total.assign_add(jnp.ones(100_000)))
        manager.save()
except tf.errors.UnavailableError as error:
    sys.stdout.write(f"ended {error.message}\n")
