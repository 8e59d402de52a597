"""Saves a checkpoint every ten steps, until it is killed. Prints first at which step it starts."""

import sys

import numpy as np

import evenfeed as tf

v = tf.Variable(np.zeros(300_000))
iterator = iter(tf.data.Dataset.range(10**6))
checkpoint = tf.train.Checkpoint(v=v, data=iterator)
manager = tf.train.CheckpointManager(checkpoint, sys.argv[1], max_to_keep=2)
manager.restore_or_initialize()
sys.stdout.write(f"{int(v[0])}\n")
sys.stdout.flush()
for number in iterator:
    assert int(number) == int(v[0]) == int(v[-1])
    v.assign_add(np.ones(300_000))
    if (int(number) + 1) % 10 == 0:
        manager.save()
