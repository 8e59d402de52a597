"""What several tests of compiled functions need."""

import functools

import jax
import numpy as np

import evenfeed as tf


def counting(function):
    """Return a function that counts how often its Python runs."""

    @functools.wraps(function)
    def counted(*args, **kwargs):
        counted.runs += 1
        return function(*args, **kwargs)

    counted.runs = 0
    return counted


def cut(strategy, array):
    """Return an array cut over the replicas."""
    return tf.distribute.PerReplica(
        array=jax.device_put(np.asarray(array), strategy.sharding("replica"))
    )


def parts(value):
    """Return the parts of a per-replica value as lists."""
    return [np.asarray(part).tolist() for part in value.values]
