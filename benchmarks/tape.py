"""Measures a training step with `GradientTape` and a Keras model against the same step with `jax.value_and_grad`.

Both are compiled, take the same batch and update the weights with SGD. Rounds alternate, and the ratio is that of the
medians. Run it on an idle machine: `python benchmarks/tape.py [--quick]`.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

import evenfeed as tf

RATE = 0.01


def main() -> None:
    """Print steps per second of both ways, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that it runs")
    rounds, steps = (3, 2) if parser.parse_args().quick else (15, 20)
    print(f"{'model':<6}{'tape':>12}{'jax':>12}{'ratio':>8}")
    for name, (make, shape) in MODELS.items():
        x = jnp.asarray(np.random.default_rng(0).normal(size=shape), "float32")
        y = jnp.zeros(shape[0], "int32")
        model = make()
        model(x)
        ways = [by_tape(model), by_jax(model)]
        tape, plain = medians([partial(way, x, y) for way in ways], rounds, steps)
        print(f"{name:<6}{1 / tape:>10.1f}/s{1 / plain:>10.1f}/s{plain / tape:>8.3f}")


def mlp() -> Any:
    """Return a model of dense layers."""
    layers = keras.layers
    return keras.Sequential(
        [*(layers.Dense(512, activation="relu") for _ in range(3)), layers.Dense(10)]
    )


def cnn() -> Any:
    """Return a model of convolutions."""
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Conv2D(16, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Conv2D(16, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )


def lstm() -> Any:
    """Return a recurrent model."""
    return keras.Sequential([keras.layers.LSTM(64), keras.layers.Dense(10)])


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "mlp": (mlp, (256, 256)),
    "cnn": (cnn, (32, 20, 20, 3)),
    "lstm": (lstm, (64, 30, 32)),
}


def loss_of(y: Any, logits: Any) -> Any:
    """Return the mean loss of a batch."""
    return jnp.mean(keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))


def by_tape(model: Any) -> Callable[[Any, Any], Any]:
    """Return a step with a tape and an optimizer of Keras."""
    optimizer = keras.optimizers.SGD(RATE)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return step


def by_jax(model: Any) -> Callable[[Any, Any], Any]:
    """Return a step with `jax.value_and_grad`, on weights of its own."""
    state = [
        [v.value for v in model.trainable_variables],
        [v.value for v in model.non_trainable_variables],
    ]

    def loss_and_state(weights: Any, others: Any, x: Any, y: Any) -> tuple[Any, Any]:
        logits, others = model.stateless_call(weights, others, x, training=True)
        return loss_of(y, logits), others

    @jax.jit
    def update(weights: Any, others: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
        gradient = jax.value_and_grad(loss_and_state, has_aux=True)
        (loss, others), gradients = gradient(weights, others, x, y)
        return loss, [w - RATE * g for w, g in zip(weights, gradients, strict=True)], others

    def step(x: Any, y: Any) -> Any:
        loss, *state[:] = update(*state, x, y)
        return loss

    return step


def medians(ways: list[Callable[[], Any]], rounds: int, steps: int) -> list[float]:
    """Return the median seconds per step of each way. The rounds alternate between them."""
    for way in ways:
        jax.block_until_ready(way())
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, found in zip(ways, times, strict=True):
            start = time.perf_counter()
            for _ in range(steps):
                result = way()
            jax.block_until_ready(result)
            found.append((time.perf_counter() - start) / steps)
    return [statistics.median(found) for found in times]


if __name__ == "__main__":
    main()
