"""Trains an MLP with optax on two replicas: parameters and optimizer state are trees of arrays.

What went through an all-reduce is the same on all replicas: it comes back as one replicated array, and goes into
the next step without a copy. Needs `pip install optax`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import evenfeed as tf

EPOCHS = 40


def main() -> None:
    strategy = two_replicas()
    optimizer = optax.adam(0.03)
    params = initial()
    state = optimizer.init(params)

    def step(params, state, x, y):
        context = tf.distribute.get_replica_context()
        loss, gradients = context.all_reduce("MEAN", jax.value_and_grad(loss_of)(params, x, y))
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    @tf.function
    def train_step(params, state, x, y):
        return strategy.run(step, args=(params, state, x, y))

    x, y = some_data()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(y), seed=1).batch(64)
    losses = []
    for _ in range(EPOCHS):
        for features, labels in strategy.experimental_distribute_dataset(dataset):
            params, state, loss = train_step(params, state, features, labels)
            losses.append(float(loss.values[0]))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {len(losses)} steps")
    print(f"each parameter is one array on {len(params['w0'].array.devices())} devices")
    assert losses[-1] < 0.3 * losses[0]
    assert params["w0"].array.sharding.is_fully_replicated


def loss_of(params, x, y):
    hidden = jnp.tanh(x @ params["w0"] + params["b0"])
    logits = hidden @ params["w1"] + params["b1"]
    return optax.sigmoid_binary_cross_entropy(logits[:, 0], y).mean()


def initial() -> dict[str, jax.Array]:
    first, second = jax.random.split(jax.random.key(0))
    return {
        "w0": jax.random.normal(first, (2, 16)),
        "b0": jnp.zeros(16),
        "w1": 0.3 * jax.random.normal(second, (16, 1)),
        "b1": jnp.zeros(1),
    }


def some_data() -> tuple[np.ndarray, np.ndarray]:
    """Return points, and whether they lie in a circle."""
    x = np.random.default_rng(0).uniform(-1, 1, (512, 2)).astype(np.float32)
    return x, (np.square(x).sum(axis=1) < 0.5).astype(np.float32)


def two_replicas() -> tf.distribute.MirroredStrategy:
    if not tf.config.list_physical_devices("GPU"):
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * 2
        )
    return tf.distribute.MirroredStrategy()


if __name__ == "__main__":
    main()
