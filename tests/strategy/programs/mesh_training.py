"""Trains on the eight devices of all processes, on meshes whose replicas are in one process or in several."""

import json
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import evenfeed as tf

ROWS, SIZE, WIDTH = 44, 16, 8
INPUTS = np.random.default_rng(3).normal(size=(ROWS, WIDTH)).astype(np.float32)
PADDED = tf.distribute.InputOptions(pad_partial_batches=True)
SUM, MEAN = tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN


# Two processes train on all meshes. With four of them, these put no other kind of replica on the processes than the rest do.
OF_TWO_PROCESSES = {"fsdp", "data alone"}


def meshes() -> dict[str, Any]:
    """Return the meshes, with the data axes and the sharding of the kernel."""
    devices = np.array(jax.devices())
    mixed = devices[[5, 0, 3, 6, 1, 4, 7, 2]].reshape(2, 2, 2)
    return {
        # Each replica has devices of one process.
        "data over processes": (
            devices.reshape(4, 2),
            ("data", "tensor"),
            "data",
            P(None, "tensor"),
        ),
        # Each process has devices of each replica.
        "tensor over processes": (
            devices.reshape(4, 2).T,
            ("data", "tensor"),
            "data",
            P("tensor"),
        ),
        "fsdp": (mixed, ("data", "fsdp", "tensor"), ("data", "fsdp"), P("fsdp", "tensor")),
        "one replica": (devices.reshape(1, 8), ("data", "tensor"), "data", P("tensor")),
        "data alone": (devices, ("data",), "data", P("data")),
    }


def trained(strategy: Any, sharding: Any, folder: str) -> dict[str, Any]:
    """Train a layer. Return its losses, and what else a worker sees."""
    with strategy.scope():
        w = tf.Variable(tf.zeros([WIDTH, WIDTH]), aggregation=MEAN, sharding=sharding)
        bias = tf.Variable(tf.fill([WIDTH], 0.5 * (1 + jax.process_index())))  # the chief's value
        rows = tf.Variable(0, aggregation=SUM)
        seen = tf.Variable(0, aggregation=SUM, synchronization=tf.VariableSynchronization.ON_READ)

    @tf.function
    def step(x: Any, valid: Any) -> Any:
        def loss(kernel: Any) -> Any:
            error = (x @ kernel + bias.value() - x) ** 2
            return jnp.sum(error * valid[:, None]) / SIZE

        value, gradient = jax.value_and_grad(loss)(w.value())
        context = tf.distribute.get_replica_context()
        gradient = context.all_reduce("sum", gradient)
        w.assign_sub(0.1 * gradient)
        bias.assign(bias.value() * 0.5)  # the same on all replicas
        count = tf.reduce_sum(tf.cast(valid, tf.int32))
        rows.assign_add(count)
        seen.assign_add(count)
        return value, context.replica_id_in_sync_group, x[:, 0]

    dataset = dataset_of(strategy)
    steps, losses, states = iter(dataset), [], []
    saved = tf.train.Checkpoint(w=w, rows=rows, seen=seen)
    path = ""
    for x, valid in steps:
        value, index, column = strategy.run(step, args=(x, valid))
        losses.append(float(strategy.reduce("SUM", value, axis=None)))
        states.append(json.loads(json.dumps(steps.get_state())))
        path = path or saved.save(os.path.join(folder, "one"))
    gathered, marks = (np.asarray(strategy.gather(each, axis=0)) for each in (column, valid))
    (again,) = iter_from(dataset, states[1])
    after = {"w": w.numpy().tolist(), "rows": int(rows.numpy()), "seen": int(seen.numpy())}
    saved.restore(path)
    first = {"w": w.numpy().tolist(), "rows": int(rows.numpy()), "seen": int(seen.numpy())}
    w.assign_add(tf.ones([WIDTH, WIDTH]))
    local = strategy.experimental_local_results
    return {
        "losses": losses,
        "after": after,
        "first": first,
        "added": w.numpy().tolist(),
        "bias": bias.numpy().tolist(),
        "replicas": [int(i) for i in local(index)],
        "shapes": sorted({s.data.shape for s in w.value().addressable_shards}),
        "column": gathered[marks].tolist(),
        "again": [part.tolist() for part in local(again[0])] == [p.tolist() for p in local(x)],
        "state": states[0],
        "length": len(dataset),
        "spec": str(dataset.element_spec),
        "text": repr(w)[:20],
        "explained": str(dataset.explain()).splitlines()[0],
    }


def dataset_of(strategy: Any) -> Any:
    shuffled = tf.data.Dataset.from_tensor_slices(INPUTS).shuffle(ROWS, seed=5)
    return strategy.experimental_distribute_dataset(shuffled.batch(SIZE), PADDED)


def iter_from(dataset: Any, state: Any) -> Any:
    iterator = iter(dataset)
    iterator.set_state(state)
    return list(iterator)


def of_function(strategy: Any) -> list[Any]:
    """Return the contexts of a function of this process, and the rows of all replicas."""
    contexts: list[Any] = []

    def make(context: Any) -> Any:
        contexts.append((context.num_input_pipelines, context.input_pipeline_id))
        first = 100 * context.input_pipeline_id
        return tf.data.Dataset.range(first, first + 8).batch(context.get_per_replica_batch_size(8))

    steps = strategy.distribute_datasets_from_function(make)
    run = tf.function(lambda x: x * 2)
    rows = [strategy.gather(strategy.run(run, args=(x,)), axis=0).tolist() for x in steps]
    return [contexts, rows]


def refused(strategy: Any) -> list[str]:
    """Return the errors of what several processes cannot do."""
    found: list[str] = []

    def attempt(call: Any) -> None:
        try:
            call()
        except (NotImplementedError, ValueError) as error:
            found.append(str(error).splitlines()[0])

    attempt(lambda: strategy.run(lambda: 1))
    attempt(lambda: strategy.reduce("MEAN", np.float32(jax.process_index()), axis=None))
    attempt(lambda: strategy.experimental_distribute_dataset(tf.data.Dataset.range(7).batch(7)))
    return found


def fitted(strategy: Any) -> Any:
    """Return the losses and predictions of a Keras model."""
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(WIDTH)])
        model.compile("sgd", "mse")
    rows = INPUTS[: 2 * SIZE]
    dataset = tf.data.Dataset.from_tensor_slices((rows, rows)).batch(SIZE)
    losses = model.fit(dataset, epochs=2, verbose=0).history["loss"]
    found = model.predict(tf.data.Dataset.from_tensor_slices(rows).batch(SIZE), verbose=0)
    return losses, found.sum(1).tolist()


def on_all_meshes(folder: str) -> dict[str, Any]:
    """Train on each mesh. Return what this process sees."""
    seen: dict[str, Any] = {}
    for number, (name, (devices, names, data_axes, sharding)) in enumerate(meshes().items()):
        if name in OF_TWO_PROCESSES and jax.process_count() != 2:
            continue
        strategy = tf.distribute.MeshStrategy(Mesh(devices, names), data_axes)
        seen[name] = trained(strategy, sharding, os.path.join(folder, str(number)))
        seen[name]["chief"] = strategy.is_chief
        if name in {"data over processes", "tensor over processes"}:
            seen[name]["function"] = of_function(strategy)
        if name == "tensor over processes":
            seen["refused"] = refused(strategy)
            seen["keras"] = fitted(strategy) if jax.process_count() == 2 else None
    return seen
