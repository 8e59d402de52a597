"""Training whose results must not depend on how four replicas are distributed over workers.

A linear regression and a small network are trained, with a short last batch, and functions run in every way
on values whose parts are equally long and on others. Each worker prints the weights and all results.
"""

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
    """Return the weights after some epochs of gradient descent on the mean over all rows of a step."""
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


ROWS_OF = {"even": (2, 2, 2, 2), "uneven": (3, 1, 0, 2)}


def total(value: Any, op: str = "SUM") -> Any:
    return tf.distribute.get_replica_context().all_reduce(op, value)


def merged(function: Any, value: Any) -> Any:
    return tf.distribute.get_replica_context().merge_call(function, args=(value,))


STEPS = {
    "sums": lambda x: total({"sum": x.sum(0), "rows": jnp.float32(x.shape[0])}),
    "one after the other": lambda x: total(total(x.sum(0), "MEAN") * x.sum(0)),
    "gradients through": jax.grad(lambda x: total((x**2).sum()) ** 2),
    "a gather": lambda x: tf.distribute.get_replica_context().all_gather(x, 0),
    "a merge": lambda x: merged(lambda s, y: s.reduce("SUM", y, axis=0), x),
}


def results(strategy: Any, kind: str) -> dict[str, Any]:
    """Return the results of functions on values of one kind. Per-replica values are gathered."""
    found: dict[str, Any] = {}

    def make(context: Any) -> Any:
        number = context.replica_id_in_sync_group
        return (np.arange(2.0 * ROWS_OF[kind][number]) + 10 * number).reshape(-1, 2)

    def value() -> Any:
        return strategy.experimental_distribute_values_from_function(
            lambda context: make(context).astype(np.float32)
        )

    def of_all(result: Any) -> Any:
        one = jnp.atleast_1d
        leaves = jax.tree.leaves(
            result, is_leaf=lambda leaf: isinstance(leaf, tf.distribute.DistributedValues)
        )
        return [
            np.asarray(strategy.gather(strategy.run(one, args=(leaf,)), axis=0)).tolist()
            for leaf in leaves
        ]

    def note(name: str, call: Any) -> None:
        try:
            found[f"{kind}: {name}"] = call()
        except tf.errors.InvalidArgumentError as error:
            found[f"{kind}: {name}"] = error.message

    for name, step in STEPS.items():
        note(f"{name}, eager", lambda step=step: of_all(strategy.run(step, args=(value(),))))
        compiled = tf.function(step)
        note(f"{name}, compiled", lambda fn=compiled: of_all(strategy.run(fn, args=(value(),))))
    across = {
        "mean of rows": lambda x: strategy.reduce("MEAN", x, axis=0),
        "sum of parts": lambda x: strategy.reduce("SUM", x, axis=None),
        "gather": lambda x: strategy.gather(x, axis=0),
    }
    for name, call in across.items():
        for way, fn in ((name, call), (f"{name}, in a function", tf.function(call))):
            note(way, lambda fn=fn: np.asarray(fn(value())).tolist())
    with strategy.scope():
        mean = tf.Variable(3.0, aggregation=tf.VariableAggregation.MEAN)
        sums = tf.Variable([1.0, 2.0], aggregation=tf.VariableAggregation.SUM)

    @tf.function
    def around(x: Any) -> Any:
        out = strategy.run(lambda x: x.sum() * mean.value(), args=(x,))
        mean.assign_add(strategy.reduce("SUM", out, axis=None))
        strategy.run(lambda x: sums.assign_add(x.sum(0)), args=(x,))
        return mean.value() + sums.value()[0]

    note("variables around it", lambda: [float(around(value())) for _ in range(2)])
    note("variables", lambda: [mean.numpy().tolist(), sums.numpy().tolist()])
    return found


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    seen: dict[str, Any] = {name: trained(strategy, *model) for name, model in MODELS.items()}
    if (
        strategy.extended.replicas.local_count > 1
    ):  # starting this program four times on two cores takes long
        seen["results"] = {**results(strategy, "even"), **results(strategy, "uneven")}
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
