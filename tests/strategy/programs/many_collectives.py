"""Runs thousands of collectives over logical CPU devices without waiting for any of them."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from evenfeed import config


def main(replicas, steps):
    config.set_logical_device_configuration(
        config.list_physical_devices("CPU")[0], [config.LogicalDeviceConfiguration()] * replicas
    )
    mesh = Mesh(np.array(jax.devices()), ("replica",))
    rows = PartitionSpec("replica")

    def average(x):
        return jax.lax.psum(x, "replica") / replicas

    step = jax.jit(
        jax.shard_map(average, mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False)
    )
    first = jax.device_put(jnp.arange(replicas * 4.0), NamedSharding(mesh, rows))
    chained = alone = first
    for _ in range(steps):
        chained = step(chained)
        alone = step(first)

    expected = np.tile(np.arange(replicas * 4.0).reshape(replicas, 4).mean(axis=0), replicas)
    np.testing.assert_allclose(np.asarray(chained), expected)
    np.testing.assert_allclose(np.asarray(alone), expected)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
