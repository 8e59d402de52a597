"""Trains a line on two replicas with variables, and checks the weights against NumPy.

Ten rows in global batches of three: one replica gets two rows and the other one, and of the last batch, which
has one row, the second replica gets none. The loss is summed over the rows of all replicas and divided by their
number, so that every row counts the same.
"""

import jax
import jax.numpy as jnp
import numpy as np

import evenfeed as tf

ROWS, BATCH, EPOCHS, RATE = 10, 3, 20, 0.1


def main() -> None:
    x, y = some_data()
    strategy = two_replicas()
    with strategy.scope():
        w = tf.Variable(jnp.zeros(2), aggregation=tf.VariableAggregation.SUM, name="w")

    def loss_of(w, x, y, rows):
        return jnp.sum((x @ w - y) ** 2) / rows

    def step(x, y, rows):
        loss, gradient = jax.value_and_grad(loss_of)(w.value(), x, y, rows)
        w.assign_sub(RATE * gradient)  # SUM: what the replicas subtract is added up first
        return loss

    @tf.function
    def train_step(x, y, rows):
        losses = strategy.run(step, args=(x, y, rows))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    for epoch in range(EPOCHS):
        for features, labels in strategy.experimental_distribute_dataset(dataset):
            parts = strategy.experimental_local_results(labels)
            loss = train_step(features, labels, tf.constant(float(sum(map(len, parts)))))
        if epoch % 5 == 4:
            print(f"epoch {epoch + 1}: loss {float(loss):.5f}, weights {w.numpy().round(3)}")

    expected = with_numpy(x, y)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-4, atol=1e-5)
    print(f"NumPy on one device finds {expected.round(3)}")


def two_replicas() -> tf.distribute.MirroredStrategy:
    if not tf.config.list_physical_devices("GPU"):
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * 2
        )
    return tf.distribute.MirroredStrategy()


def some_data() -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(0)
    x = draws.standard_normal((ROWS, 2)).astype(np.float32)
    return x, x @ np.float32([2.0, -3.0])


def with_numpy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    w = np.zeros(2, np.float32)
    for _ in range(EPOCHS):
        for start in range(0, ROWS, BATCH):
            rows, labels = x[start : start + BATCH], y[start : start + BATCH]
            w -= RATE * 2 * rows.T @ (rows @ w - labels) / len(labels)
    return w


if __name__ == "__main__":
    main()
