"""Fed steps of a tiny model and of an MLP 784-512-10, one by one and 32 in one program.

The third argument is the number of CPU replicas. The process has as many devices: more devices need more threads, with which
XLA computes more slowly. All variants of one process take turns. Each round reads 32 global batches from the same rows, and
trains on them.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from timing import Step, main, rates_of
from training import BATCHES, RATE, batches, loss_of, replicas, weights

STEPS = 32
FEATURES, TINY = 32, 64


def tiny_batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return global batches for a model of one layer."""
    draws = np.random.default_rng(0)
    return [
        (draws.standard_normal((TINY, FEATURES), np.float32), np.zeros(TINY, np.float32))
        for _ in range(64)
    ]


def tiny_loss(params: dict[str, Any], x: Any, y: Any) -> Any:
    """Return the mean squared error of one layer."""
    return ((x @ params["w"] - y) ** 2).mean()


# The batches, the parameters and the loss of each model.
MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[..., Any]]] = {
    "one layer, batch 64": (tiny_batches, lambda: {"w": np.zeros(FEATURES, np.float32)}, tiny_loss),
    "MLP 784-512-10, batch 256": (lambda: batches(256) * (STEPS // BATCHES), weights, loss_of),
}


def raw(strategy: Any, model: str, *, scans: bool) -> Step:
    """Write the steps as one writes them in JAX: rows are put by hand, for one step or for a scan over 32."""
    import jax

    made, first, loss_of_model = MODELS[model]
    data = made()
    spec = jax.sharding.PartitionSpec
    whole = [np.stack(each) for each in zip(*data, strict=True)]

    def local(params: Any, batch: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of_model)(params, *batch)
        loss, gradients = jax.lax.pmean((loss, gradients), "replica")
        return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), loss

    def many(params: Any, x: Any, y: Any) -> Any:
        return jax.lax.scan(local, params, (x, y))

    def single(params: Any, x: Any, y: Any) -> Any:
        return local(params, (x, y))

    cut = spec(None, "replica") if scans else spec("replica")
    mapped = jax.shard_map(
        many if scans else single,
        mesh=strategy.mesh,
        in_specs=(spec(), cut, cut),
        out_specs=(spec(), spec()),
        check_vma=False,
    )
    step = jax.jit(mapped)
    there = jax.sharding.NamedSharding(strategy.mesh, cut)
    state = {"params": jax.device_put(first(), strategy.sharding()), "at": 0}

    def put(rows: np.ndarray) -> Any:
        return jax.make_array_from_callback(rows.shape, there, rows.__getitem__)

    def run() -> Any:
        at = state["at"]
        state["at"] = (at + STEPS) % len(data)
        loss = None
        for i in range(1 if scans else STEPS):
            rows = slice(at, at + STEPS) if scans else at + i
            state["params"], loss = step(state["params"], *(put(each[rows]) for each in whole))
        return loss

    return run


def rows_of(tf: Any, model: str) -> Any:
    """Return a dataset of the model's global batches, without end."""
    data = MODELS[model][0]()
    x, y = (np.concatenate(each) for each in zip(*data, strict=True))
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(len(data[0][0])).repeat()


def evenfeed_ways(strategy: Any, model: str) -> dict[str, Step]:
    """Return evenfeed's ways to run 32 steps that are fed from a dataset."""
    import jax

    import evenfeed as tf

    _, first, loss_of_model = MODELS[model]
    with strategy.scope():
        one = tf.VariableAggregation.ONLY_FIRST_REPLICA
        held = {name: tf.Variable(value, aggregation=one) for name, value in first().items()}

    def local(batch: Any) -> Any:
        context = tf.distribute.get_replica_context()
        params = {name: variable.value() for name, variable in held.items()}
        loss, gradients = jax.value_and_grad(loss_of_model)(params, *batch)
        loss, gradients = context.all_reduce("MEAN", (loss, gradients))
        for name, variable in held.items():
            variable.assign_sub(RATE * gradients[name])
        return loss

    @tf.function
    def single(batch: Any) -> Any:
        return strategy.run(local, args=(batch,))

    @tf.function
    def loop(given: Any) -> Any:
        for _ in tf.range(STEPS):
            loss = strategy.run(local, args=(next(given),))
        return loss

    data = strategy.experimental_distribute_dataset(rows_of(tf, model))
    each, all_, many = iter(data), iter(data), iter(data)
    return {
        "one by one": lambda: [single(next(each)) for _ in range(STEPS)][-1],
        "tf.range": partial(loop, all_),
        "run_steps": lambda: strategy.run_steps(local, many, steps=STEPS)[-1],
    }


def in_jax(seconds: float) -> dict[str, float]:
    """Compare evenfeed's ways with those by hand, in microseconds per step."""
    import jax

    count = int(sys.argv[3])
    strategy = replicas(count)
    found: dict[str, float] = {}
    for model in MODELS:
        ways = {
            "raw, one by one": raw(strategy, model, scans=False),
            "raw, scan of 32": raw(strategy, model, scans=True),
            **evenfeed_ways(strategy, model),
        }
        rates = rates_of(ways, seconds / 2, jax.block_until_ready, 1)
        found |= {f"{model}|{count}|{way}": 1e6 / STEPS / r for way, r in rates.items()}
    return found


# --- TensorFlow --------------------------------------------------------------------------------


def in_tensorflow(seconds: float) -> dict[str, float]:
    """Run TensorFlow's loop over `tf.range`, in microseconds per step."""
    import tensorflow as tf

    count = int(sys.argv[3])
    cpu = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(cpu, logical)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])
    found: dict[str, float] = {}
    for model in MODELS:
        loop = tensorflow_loop(strategy, model)
        rates = rates_of({"loop": loop}, seconds / 2, lambda x: x, 1)
        found[f"{model}|{count}|TensorFlow, tf.range"] = 1e6 / STEPS / rates["loop"]
    return found


def tensorflow_loop(strategy: Any, model: str) -> Step:
    """Return 32 steps in one call of a `tf.function`."""
    import tensorflow as tf

    with strategy.scope():
        mean = tf.VariableAggregation.MEAN
        first = MODELS[model][1]()
        held = {name: tf.Variable(value, aggregation=mean) for name, value in first.items()}

    def local(batch: Any) -> Any:
        x, y = batch
        with tf.GradientTape() as tape:
            if "w" in held:
                loss = tf.reduce_mean((tf.linalg.matvec(x, held["w"]) - y) ** 2)
            else:
                hidden = tf.nn.relu(x @ held["w0"] + held["b0"])
                logits = hidden @ held["w1"] + held["b1"]
                each = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
                loss = tf.reduce_mean(each)
        gradients = tape.gradient(loss, held)
        for name, variable in held.items():
            variable.assign_sub(RATE * gradients[name])
        return loss

    @tf.function
    def loop(given: Any) -> Any:
        for _ in tf.range(STEPS):
            strategy.run(local, args=(next(given),))
        return tf.constant(0)

    data = iter(strategy.experimental_distribute_dataset(rows_of(tf, model)))
    return lambda: loop(data).numpy()


VARIANTS = {"jax": in_jax, "tensorflow": in_tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
