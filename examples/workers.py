"""Trains a line on several workers, and checks the weights against NumPy.

Run it with `evenfeed run --workers 2 --replicas 2 examples/workers.py`, or as it is: then there is one worker.
The last batch has six rows, so that one of four replicas gets none. The weights are those of one device, whatever
the number of workers: every row counts the same.
"""

import jax
import jax.numpy as jnp
import numpy as np

import evenfeed as tf

ROWS, BATCH, EPOCHS, RATE = 22, 8, 40, 0.1


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # first of all: before anything computes
    x, y = some_data()
    with strategy.scope():
        w = tf.Variable(jnp.zeros(2), aggregation=tf.VariableAggregation.SUM, name="w")

    def loss_of(w, x, y):
        return jnp.sum((x @ w - y) ** 2) / BATCH

    def step(x, y):
        loss, gradient = jax.value_and_grad(loss_of)(w.value(), x, y)
        w.assign_sub(
            RATE * gradient
        )  # SUM: what the replicas of all workers subtract is added up first
        return loss

    @tf.function
    def train_step(x, y):
        losses = strategy.run(step, args=(x, y))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    distributed = strategy.experimental_distribute_dataset(dataset)
    seen = 0
    for epoch in range(EPOCHS):
        for features, labels in distributed:
            if epoch == 0:
                seen += sum(map(len, strategy.experimental_local_results(labels)))
            loss = train_step(features, labels)

    np.testing.assert_allclose(w.numpy(), with_numpy(x, y), rtol=1e-4, atol=1e-5)
    print(f"{strategy.num_replicas_in_sync} replicas; this worker saw {seen} of {ROWS} rows")
    print(
        f"loss {float(loss):.5f}, weights {w.numpy().round(3)}, as NumPy finds them on one device"
    )


def some_data() -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(0)
    x = draws.standard_normal((ROWS, 2)).astype(np.float32)
    return x, x @ np.float32([2.0, -3.0])


def with_numpy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    w = np.zeros(2, np.float32)
    for _ in range(EPOCHS):
        for start in range(0, ROWS, BATCH):
            rows, labels = x[start : start + BATCH], y[start : start + BATCH]
            w -= RATE * 2 * rows.T @ (rows @ w - labels) / BATCH
    return w


if __name__ == "__main__":
    main()
