"""Trains some epochs with an uneven last batch on several workers, and counts traces. The test compares them."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import evenfeed as tf


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    count = strategy.num_replicas_in_sync
    rows = np.random.default_rng(0).normal(size=(9 * count + 1, 3)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1))).batch(4 * count)
    steps = strategy.experimental_distribute_dataset(dataset)
    traced: list[Any] = []

    def gradient(w: Any, x: Any, y: Any) -> Any:
        traced.append(x.shape)
        return jax.grad(lambda w: ((x @ w - y) ** 2).sum())(w)

    def functional(w: Any, x: Any, y: Any) -> Any:
        total = tf.distribute.get_replica_context().all_reduce("MEAN", gradient(w, x, y))
        return w - 0.01 * total

    with strategy.scope():
        variable = tf.Variable(jnp.zeros(3), aggregation=tf.VariableAggregation.MEAN)

    def with_variable(x: Any, y: Any) -> None:
        variable.assign_sub(0.01 * gradient(variable.value(), x, y))

    seen: dict[str, Any] = {"functional": [], "variables": []}
    train = tf.function(lambda *given: strategy.run(functional, args=given))
    weights: Any = jnp.zeros(3)
    for _ in range(3):
        for x, y in steps:
            weights = train(weights, x, y)
        seen["functional"].append(train.experimental_get_tracing_count())
    train = tf.function(lambda *given: strategy.run(with_variable, args=given))
    for _ in range(3):
        for x, y in steps:
            train(x, y)
        seen["variables"].append(train.experimental_get_tracing_count())
    seen["weights"] = np.asarray(strategy.experimental_local_results(weights)[0]).tolist()
    seen["variable"] = variable.numpy().tolist()
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
