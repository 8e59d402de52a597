"""Trains a linear regression and a small network, with a short last batch. Each worker prints its weights."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import evenfeed as tf

ROWS, BATCH, EPOCHS = 13, 8, 3

random = np.random.default_rng(3)
x = random.normal(size=(ROWS, 3)).astype(np.float32)
y = (x @ np.array([1.0, -2.0, 0.5]) + 0.25 * x[:, 0] ** 2).astype(np.float32)


def linear(weights: Any, rows: Any) -> Any:
    return rows @ weights[0] + weights[1]


def network(weights: Any, rows: Any) -> Any:
    return jnp.tanh(rows @ weights[0] + weights[1]) @ weights[2] + weights[3]


MODELS = {
    "linear": (linear, [np.zeros(3, np.float32), np.float32(0)]),
    "network": (
        network,
        [
            random.normal(size=(3, 8)).astype(np.float32),
            np.zeros(8, np.float32),
            random.normal(size=8).astype(np.float32),
            np.float32(0),
        ],
    ),
}


def trained(strategy: Any, model: Any, begin: list[Any]) -> list[Any]:
    """Return the weights after some epochs; a step goes down the gradient of the mean over all its rows."""
    with strategy.scope():
        mean = tf.VariableAggregation.MEAN
        weights = [tf.Variable(array, aggregation=mean) for array in begin]

    @tf.function
    def step(rows: Any, wanted: Any) -> None:
        def loss(values: Any) -> Any:
            return jnp.sum((model(values, rows) - wanted) ** 2)

        gradients = jax.grad(loss)([variable.value() for variable in weights])
        context = tf.distribute.get_replica_context()
        total, count = context.all_reduce("SUM", (gradients, jnp.float32(rows.shape[0])))
        for variable, gradient in zip(weights, total, strict=True):
            variable.assign_sub(0.1 * gradient / count)

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    for _ in range(EPOCHS):
        for rows, wanted in strategy.experimental_distribute_dataset(dataset):
            strategy.run(step, args=(rows, wanted))
    copies = [[np.asarray(copy).tolist() for copy in variable.values] for variable in weights]
    assert all(copy == each[0] for each in copies for copy in each), "the copies of a worker differ"
    return [each[0] for each in copies]


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    seen = {name: trained(strategy, *model) for name, model in MODELS.items()}
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
