"""Steps that reach the replicas: evenfeed and the same by hand, in turns in one process, or TensorFlow."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
from timing import main, paired, rates_of

ROWS, WIDTH, BATCH = 200_000, 32, 1024
RANGE, SMALL = 10**9, 64
STEP = 0.005
MEASURED = {"tabular": 20, "range": 50}  # how many steps a round has
BELOW = {
    "hidden": 20,
    "computed": 20,
}  # of which two may have been read while the others had their turn


def in_jax(seconds: float) -> dict[str, float]:
    """Compare evenfeed with what is left without it."""
    import jax

    import evenfeed as tf

    four = strategy_of(tf, 4)  # the devices of all: their number is chosen once
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rates: dict[str, float] = {}
    for job, count in MEASURED.items():
        strategy = four if job == "range" else two
        rows, sharding = numbers() if job == "range" else by_hand(), strategy.sharding("replica")
        ways = {
            "evenfeed": strategy.experimental_distribute_dataset(dataset_of(tf, job)),
            "by hand": (jax.device_put(batch, sharding) for batch in rows),
        }
        rates |= rates_of(turns(job, ways, lambda x: x), seconds, no_block, count)
    constant = jax.device_put(next(by_hand()), two.sharding("replica"))
    constant = tf.distribute.PerReplica(array=constant, count=2)
    for job, count in BELOW.items():
        ways = {
            "evenfeed": two.experimental_distribute_dataset(dataset_of(tf, job)),
            "by hand": repeat(constant),
        }
        rates |= paired(turns(job, ways, step_of(job, two)), 4 * seconds, no_block, count)
    return rates


def turns(
    job: str, ways: dict[str, Iterable[Any]], step: Callable[[Any], Any]
) -> dict[str, Callable[[], Any]]:
    """Return what takes the next step in each way of a job."""
    return {f"{job}, {name}": over(steps, step) for name, steps in ways.items()}


def no_block(_: Any) -> None:
    """Wait for nothing: each step is waited for."""


def over(steps: Iterable[Any], step: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return a function that takes the next step."""
    iterator = iter(steps)
    return lambda: step(next(iterator))


def in_tensorflow(seconds: float) -> dict[str, float]:
    """Measure TensorFlow's MirroredStrategy."""
    import tensorflow as tf

    four = strategy_of(tf, 4)
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rates: dict[str, float] = {}
    for job in MEASURED:
        strategy = four if job == "range" else two
        steps = strategy.experimental_distribute_dataset(dataset_of(tf, job))
        ways = turns(job, {"tensorflow": steps}, lambda x: x)
        rates |= rates_of(ways, seconds, no_block, 20)
    return rates


def strategy_of(tf: Any, count: int) -> Any:
    """Return a strategy on so many CPU devices, in evenfeed or TensorFlow."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(cpu, devices)
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)])


def dataset_of(tf: Any, job: str) -> Any:
    """Return the dataset of a job, in evenfeed or TensorFlow."""
    if job == "range":
        return tf.data.Dataset.range(RANGE).batch(SMALL)
    data = np.random.default_rng(0).random((ROWS, WIDTH), np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(ROWS, seed=1)
    return dataset.map(lambda x: x * 2 - 1).batch(BATCH, drop_remainder=True).repeat()


def by_hand() -> Iterator[Any]:
    """Yield the batches of the table, by NumPy alone."""
    draws = np.random.default_rng(0)
    data = draws.random((ROWS, WIDTH), np.float32)
    while True:
        order = draws.permutation(ROWS)
        for start in range(0, ROWS - BATCH + 1, BATCH):
            batch = np.take(data, order[start : start + BATCH], axis=0)
            batch *= 2
            batch -= 1
            yield batch


def numbers() -> Iterator[Any]:
    """Yield the batches of the range, in the dtype in which they arrive."""
    for start in range(0, RANGE, SMALL):
        yield np.arange(start, start + SMALL, dtype=np.int32)


def step_of(job: str, strategy: Any) -> Callable[[Any], Any]:
    """Return a step that waits for 5 ms, or computes on all cores for some 20 ms."""
    if job == "hidden":
        return lambda _: time.sleep(STEP)
    import jax
    import jax.numpy as jnp

    def compute(x: Any) -> Any:
        return jax.lax.fori_loop(0, 800, lambda _, h: jnp.tanh(h * 1.01), x)

    spec = jax.sharding.PartitionSpec("replica")
    step = jax.jit(jax.shard_map(compute, mesh=strategy.mesh, in_specs=spec, out_specs=spec))
    return lambda x: step(x.array).block_until_ready()


if __name__ == "__main__":
    main({"jax": in_jax, "tensorflow": in_tensorflow})
