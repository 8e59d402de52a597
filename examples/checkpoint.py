"""Trains a line, is stopped twice, and goes on at the exact batch: the weights are those of a run without a stop.

Model, optimizer and the position of the data are in one checkpoint. Needs `pip install 'evenfeed[checkpoint]' optax`.
"""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax

import evenfeed as tf

STEPS, EVERY = 60, 5


def main() -> None:
    strategy = two_replicas()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as parts:
        expected = train(strategy, whole, stop_at=STEPS)
        for stop_at in (17, 43, STEPS):  # each is a new program as far as the checkpoint knows
            found = train(strategy, parts, stop_at)
        print(f"never stopped: {expected}, stopped twice: {found}")
        assert np.array_equal(expected, found)
        names = {name.partition("/.")[0] for name, _ in tf.train.list_variables(parts)}
        print(f"in the checkpoint: {', '.join(sorted(names))}, and the position of the data")


def train(strategy: tf.distribute.Strategy, folder: str, stop_at: int) -> np.ndarray:
    """Continue from the latest checkpoint in a folder, and return the weights at a step."""
    x, y = some_data()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(y), seed=1).repeat().batch(16)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    optimizer = optax.adam(0.1)
    params = jnp.zeros(2)
    step = tf.Variable(0)

    checkpoint = tf.train.Checkpoint(
        step=step, data=iterator, params=params, state=optimizer.init(params)
    )
    manager = tf.train.CheckpointManager(
        checkpoint, folder, max_to_keep=2, step_counter=step, checkpoint_interval=EVERY
    )
    restored = manager.restore_or_initialize()
    print(
        f"starts at step {int(step)}" + (f" from {restored.rpartition('/')[2]}" if restored else "")
    )
    params, state = checkpoint.params, checkpoint.state

    def replica_step(params, state, x, y):
        context = tf.distribute.get_replica_context()
        gradient = context.all_reduce("MEAN", jax.grad(loss_of)(params, x, y))
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state

    @tf.function
    def train_step(params, state, x, y):
        return strategy.run(replica_step, args=(params, state, x, y))

    while int(step) < stop_at:
        params, state = train_step(params, state, *next(iterator))
        step.assign_add(1)
        checkpoint.params, checkpoint.state = params, state
        manager.save()  # every five steps
    return np.asarray(params)


def loss_of(w, x, y):
    return jnp.mean((x @ w - y) ** 2)


def some_data() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(128, 2)).astype(np.float32)
    return x, (x @ np.array([1.5, -0.5])).astype(np.float32)


def two_replicas() -> tf.distribute.MirroredStrategy:
    if not tf.config.list_physical_devices("GPU"):
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * 2
        )
    return tf.distribute.MirroredStrategy()


if __name__ == "__main__":
    main()
