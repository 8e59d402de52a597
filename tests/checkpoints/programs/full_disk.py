"""Saves, then fails to save on a disk that is full, then saves again. Prints what happened."""

import json
import resource
import signal
import sys

import numpy as np

import evenfeed as tf

v = tf.Variable(np.random.default_rng(1).normal(size=200_000))
small = tf.Variable(1.0)
checkpoint = tf.train.Checkpoint(v=v, small=small)
manager = tf.train.CheckpointManager(checkpoint, sys.argv[1], max_to_keep=None)
manager.save()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))  # like a full disk
small.assign(2.0)
kind = text = ""
try:
    manager.save()
except tf.errors.OpError as error:
    kind, text = type(error).__name__, error.message
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
latest = tf.train.latest_checkpoint(sys.argv[1])
value = float(tf.train.load_variable(latest, "small/.ATTRIBUTES/VARIABLE_VALUE"))
again = manager.save()
sys.stdout.write(json.dumps([kind, text, latest, value, again]) + "\n")
