"""Runs many steps in one program on all workers, and compares them with single steps."""

import json
import sys
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import evenfeed as tf
from evenfeed.feeding.distributed_dataset import DistributedIterator

DATA = np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)
PADDED = tf.distribute.InputOptions(pad_partial_batches=True)
MEAN = tf.VariableAggregation.MEAN

runs: list[int] = []  # how many steps ran together
take_run = DistributedIterator.take_run


def counted(self: Any, run: Any) -> bool:
    runs.append(run.count)
    return take_run(self, run)


DistributedIterator.take_run = counted  # type: ignore[method-assign]


def datasets(strategy: Any) -> dict[str, Any]:
    """Return distributed datasets that the workers read in different ways."""
    rows = tf.data.Dataset.from_tensor_slices(DATA)
    shuffled = rows.shuffle(8, seed=1, reshuffle_each_iteration=False)

    def with_policy(dataset: Any, name: str) -> Any:
        options = tf.data.Options()
        policy = getattr(tf.data.experimental.AutoShardPolicy, name)
        options.experimental_distribute.auto_shard_policy = policy
        if name == "LANES":
            options.experimental_distribute.num_lanes = 2
        return dataset.with_options(options)

    def own(context: Any) -> Any:
        return rows.shard(context.num_input_pipelines, context.input_pipeline_id).batch(3)

    distributed = strategy.experimental_distribute_dataset
    return {
        "by row": distributed(shuffled.batch(8)),
        "without positions": distributed(shuffled.filter(lambda x: x[0] > -1).batch(8)),
        "all rows": distributed(with_policy(shuffled.batch(8), "OFF")),
        "lanes": distributed(with_policy(shuffled.batch(8), "LANES")),
        "function": strategy.distribute_datasets_from_function(own),
    }


class Training:
    def __init__(self, strategy: Any, sharding: Any = None) -> None:
        self.strategy = strategy
        with strategy.scope():
            given = {} if sharding is None else {"sharding": sharding}
            self.weights = tf.Variable(np.zeros((4, 4), np.float32), aggregation=MEAN, **given)

    def step(self, batch: Any) -> Any:
        rows, valid = batch if isinstance(batch, tuple) else (batch, np.float32(1))

        def loss(weights: Any) -> Any:
            return (((rows @ weights - rows) ** 2).sum(axis=1) * valid).sum()

        value, change = jax.value_and_grad(loss)(self.weights.value())
        total = tf.distribute.get_replica_context().all_reduce("SUM", change)
        self.weights.assign_sub(0.01 * total)
        return value

    def parts(self, value: Any) -> Any:
        return [float(part) for part in self.strategy.experimental_local_results(value)]


def one_by_one(strategy: Any, dataset: Any, sharding: Any = None) -> Any:
    training = Training(strategy, sharding)
    run = tf.function(lambda batch: strategy.run(training.step, args=(batch,)))
    steps, losses, states = iter(dataset), [], []
    for batch in steps:
        losses.append(training.parts(run(batch)))
        states.append(steps.get_state())
    return losses, states, training.weights.numpy().tolist()


def together(strategy: Any, dataset: Any, sharding: Any = None) -> dict[str, Any]:
    """Run all steps of a dataset, four at a time, then in a loop of a function. Return what differs from single steps."""
    losses, states, weights = one_by_one(strategy, dataset, sharding)
    training = Training(strategy, sharding)
    runs.clear()
    steps, found, are_same = iter(dataset), [], True
    while results := strategy.run_steps(training.step, steps, steps=4):
        found += map(training.parts, results)
        are_same = are_same and steps.get_state() == states[len(found) - 1]
    own_runs, after = list(runs), training.weights.numpy().tolist()

    training = Training(strategy, sharding)
    again = iter(dataset)
    again.set_state(states[1])

    @tf.function
    def loop(iterator: Any, count: int) -> Any:
        total = 0.0
        for _ in tf.range(count):
            total += strategy.reduce(
                "SUM", strategy.run(training.step, args=(next(iterator),)), None
            )
        return total

    runs.clear()
    total = float(loop(again, len(losses) - 2))
    return {
        "runs": own_runs,
        "losses": np.allclose(found, losses, rtol=1e-5) and len(found) == len(losses),
        "weights": np.allclose(after, weights, atol=1e-6),
        "states": are_same,
        "loop": [sum(runs), total, again.get_state() == states[-1]],
        "explained": [
            x.strip() for x in str(dataset.explain()).splitlines() if "in one program" in x
        ],
    }


def after_single_steps(strategy: Any) -> Any:
    """Return the sums of the steps: one by one, with steps that a thread may have read ahead, and together."""
    steps = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(80).batch(8)))
    total = tf.function(lambda x: strategy.reduce("SUM", strategy.run(tf.reduce_sum, (x,)), None))
    found = [int(total(next(steps)))]
    for count in (3, 2):
        results = strategy.run_steps(tf.reduce_sum, steps, steps=count)
        found += [int(strategy.reduce("SUM", each, None)) for each in results]
        found.append(int(total(next(steps))))
    return found


def of_tensorflow_1(strategy: Any) -> Any:
    """Return the output of the last of five steps, and how many ran together."""
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(80).batch(8))
    runs.clear()

    def step(context: Any, batch: Any) -> None:
        total = strategy.run(tf.reduce_sum, args=(batch,))
        context.set_last_step_output("total", total, reduce_op="SUM")

    found = strategy.extended.experimental_run_steps_on_iterator(step, iter(dataset), 5)
    return [int(found.last_step_outputs["total"]), sum(runs)]


def fitted(strategy: Any, together: int) -> Any:
    """Return the losses of a Keras model, its predictions, and how many steps ran together."""
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse", steps_per_execution=together)
    rows = tf.data.Dataset.from_tensor_slices((DATA[:, :3], DATA[:, 3:])).batch(8)
    runs.clear()
    losses = model.fit(rows, epochs=2, verbose=0, shuffle=False).history["loss"]
    predicted = model.predict(rows.map(lambda x, y: x), verbose=0)
    return [losses, np.asarray(predicted).ravel().tolist(), sum(runs)]


def failing(strategy: Any) -> Any:
    """Return the error of a worker whose row is bad, and how many steps had run."""

    def check(x: Any) -> Any:
        tf.debugging.assert_none_equal(x, np.int64(9 + 100 * (jax.process_index() == 1)))
        return x

    rows = tf.data.Dataset.range(64).filter(lambda x: x >= 0).map(check).batch(8)
    steps = iter(strategy.distribute_datasets_from_function(lambda context: rows))
    done = 0
    try:
        while results := strategy.run_steps(lambda x: x, steps, steps=2):
            done += len(results)
    except (tf.errors.InvalidArgumentError, tf.errors.AbortedError) as error:
        return [done, type(error).__name__]
    return [done, None]


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    seen: dict[str, Any] = {
        name: together(strategy, dataset) for name, dataset in datasets(strategy).items()
    }
    seen["tensorflow 1"] = of_tensorflow_1(strategy)
    seen["keras"] = [fitted(strategy, 1), fitted(strategy, 4)]
    seen["after single steps"] = after_single_steps(strategy)
    seen["failing"] = failing(strategy)
    # Each worker has devices of each replica.
    devices = np.array(jax.devices()).reshape(2, 2).T
    mesh = tf.distribute.MeshStrategy(Mesh(devices, ("data", "tensor")))
    rows = tf.data.Dataset.from_tensor_slices(DATA).shuffle(8, 1, reshuffle_each_iteration=False)
    dataset = mesh.experimental_distribute_dataset(rows.batch(8), PADDED)
    seen["mesh"] = together(mesh, dataset, P("tensor"))
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
