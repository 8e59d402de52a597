"""Launches steps with a collective from several threads, without waiting for any of them."""

import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

import evenfeed as tf


def main(replicas, threads, steps):
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * replicas,
    )
    strategy = tf.distribute.MirroredStrategy()
    rows = tf.data.Dataset.range(replicas).batch(replicas)
    batch = next(iter(strategy.experimental_distribute_dataset(rows)))

    def summed(x):
        return tf.distribute.get_replica_context().all_reduce("SUM", x)

    @tf.function
    def step(x):
        return strategy.run(summed, args=(x,))

    def work(_):
        for _ in range(steps):
            result = step(batch)
        return np.asarray(jax.block_until_ready(result.values[0]))

    with ThreadPoolExecutor(threads) as pool:
        for result in pool.map(work, range(threads)):
            np.testing.assert_array_equal(result, [sum(range(replicas))])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
