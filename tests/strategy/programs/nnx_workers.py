"""Trains a flax.nnx module on several workers, with even or uneven parts. The test compares the results."""

import json
import sys
from typing import Any

import numpy as np
import optax
from flax import nnx

import evenfeed as tf


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rows = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True)))

    def loss(model: Any, x: Any, y: Any) -> Any:
        return ((model(x) - y) ** 2).sum()

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        own, grads = nnx.value_and_grad(loss)(model, x, y)
        context = tf.distribute.get_replica_context()
        optimizer.update(model, context.all_reduce("SUM", grads))
        return context.all_reduce("SUM", own)

    def made() -> Any:
        model = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.sgd(0.01), wrt=nnx.Param)

    def alone() -> list[float]:
        model, optimizer = made()
        for first in (0, 8) * 2:
            batch = rows[first : first + 8]
            grads = nnx.grad(loss)(model, batch, batch.sum(1, keepdims=True))
            optimizer.update(model, grads)
        return np.asarray(model.kernel[...]).ravel().tolist()

    compiled = tf.function(lambda *given: strategy.run(step, args=given))
    inner = tf.function(step)
    ways = {
        "eager": lambda *given: strategy.run(step, args=given),
        "compiled": compiled,
        "of a function": lambda *given: strategy.run(inner, args=given),
    }
    seen: dict[str, Any] = {"alone": alone()}
    for way, train in ways.items():
        model, optimizer = made()
        for _ in range(2):
            for x, y in strategy.experimental_distribute_dataset(dataset.batch(8)):
                train(model, optimizer, x, y)
        seen[way] = np.asarray(model.kernel[...]).ravel().tolist()
        seen[f"{way}, steps"] = int(optimizer.step[...])
    seen["traces"] = compiled.experimental_get_tracing_count()
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


main()
