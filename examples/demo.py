"""Distributes a small dataset over four replicas, prints what each gets, and checks it.

On a machine without GPUs the replicas are four logical CPU devices. Run it with `make demo`.
"""

import jax
import jax.numpy as jnp
import numpy as np

import evenfeed as tf

REPLICAS = 4
GLOBAL_BATCH = 8


def main() -> None:
    strategy = four_replicas()
    images, labels = some_data(rows=22)
    dataset = tf.data.Dataset.from_tensor_slices({"image": images, "label": labels})
    steps = strategy.experimental_distribute_dataset(dataset.batch(GLOBAL_BATCH))

    print(
        f"{len(labels)} rows, global batch {GLOBAL_BATCH}, {strategy.num_replicas_in_sync} replicas"
    )
    for device in strategy.devices:
        print(f"  {device}")

    seen: list[int] = []
    for number, step in enumerate(steps):
        print(f"\nstep {number}")
        for replica, part in enumerate(strategy.experimental_local_results(step)):
            print(
                f"  replica {replica}: labels {part['label'].tolist()}, image {part['image'].shape}"
            )
            seen += part["label"].tolist()

    assert seen == labels.tolist(), "every row goes to exactly one replica, in order"
    print(f"\nall {len(seen)} rows arrived once")
    print(f"mean image over all replicas of a full batch: {mean_of_first_batch(steps):.4f}")
    print(f"the same with NumPy on the host:              {images[:GLOBAL_BATCH].mean():.4f}")


def four_replicas() -> tf.distribute.MirroredStrategy:
    if not tf.config.list_physical_devices("GPU"):
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS
        )
    return tf.distribute.MirroredStrategy()


def some_data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng(0)
    return numbers.random((rows, 28, 28), np.float32), np.arange(rows, dtype=np.int32)


def mean_of_first_batch(steps: tf.distribute.DistributedDataset) -> float:
    """A per-replica value is one sharded `jax.Array`: any `jax.jit` takes it as it is."""
    images = next(iter(steps))["image"].array
    return float(jax.jit(jnp.mean)(images))


if __name__ == "__main__":
    main()
