"""An MLP 784-512-10 with SGD and an all-reduce of the gradients, on several replicas of the CPU.

Variants of one process take turns, so that all meet the same machine, and the median of the rounds counts: a step
waits for all replicas, so the best round is one in which nothing else ran, which few have on a busy machine.
"""

import warnings
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from timing import Step, main, rates_of

FEATURES, HIDDEN, CLASSES, RATE = 784, 512, 10, 0.1
BATCHES = 4


def batches(rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return global batches of images and labels."""
    draws = np.random.default_rng(0)
    return [
        (
            draws.standard_normal((rows, FEATURES), np.float32),
            draws.integers(0, CLASSES, rows, dtype=np.int32),
        )
        for _ in range(BATCHES)
    ]


def weights() -> dict[str, np.ndarray]:
    """Return the parameters of the MLP."""
    draws = np.random.default_rng(1)
    sizes = (FEATURES, HIDDEN), (HIDDEN, CLASSES)
    made = {f"w{i}": draws.standard_normal(size, np.float32) * 0.05 for i, size in enumerate(sizes)}
    return {**made, **{f"b{i}": np.zeros(size[1], np.float32) for i, size in enumerate(sizes)}}


# --- JAX ---------------------------------------------------------------------------------------


def loss_of(params: dict[str, Any], x: Any, y: Any) -> Any:
    """Return the mean cross entropy."""
    import jax
    import jax.numpy as jnp

    hidden = jax.nn.relu(x @ params["w0"] + params["b0"])
    logits = hidden @ params["w1"] + params["b1"]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
    return -jnp.sum(chosen) / max(len(y), 1)


def replicas(count: int) -> Any:
    """Return a strategy on that many CPU devices."""
    import evenfeed as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * count
    )
    return tf.distribute.MirroredStrategy()


def by_hand(strategy: Any, parts: list[Any]) -> Step:
    """Write the step as one writes it in JAX: `jit` of `shard_map`."""
    import jax

    spec = jax.sharding.PartitionSpec
    mesh = strategy.mesh

    def local(params: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
        loss, gradients = jax.lax.pmean((loss, gradients), "replica")
        return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), loss

    cut = spec("replica")
    step = jax.jit(
        jax.shard_map(
            local,
            mesh=mesh,
            in_specs=(spec(), cut, cut),
            out_specs=(spec(), spec()),
            check_vma=False,
        )
    )
    state = {"params": jax.device_put(weights(), strategy.sharding())}
    given = cycle([(x.array, y.array) for x, y in parts])

    def one() -> Any:
        state["params"], loss = step(state["params"], *next(given))
        return loss

    return one


def with_tree(strategy: Any, parts: list[Any]) -> Step:
    """Pass the parameters through `strategy.run` as a tree."""
    import jax

    import evenfeed as tf

    def local(params: Any, x: Any, y: Any) -> Any:
        context = tf.distribute.get_replica_context()
        loss, gradients = context.all_reduce("MEAN", jax.value_and_grad(loss_of)(params, x, y))
        return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), loss

    @tf.function
    def step(params: Any, x: Any, y: Any) -> Any:
        return strategy.run(local, args=(params, x, y))

    state = {"params": jax.tree.map(jax.numpy.asarray, weights())}
    given = cycle(parts)

    def one() -> Any:
        state["params"], loss = step(state["params"], *next(given))
        return loss

    return one


def with_variables(strategy: Any, parts: list[Any]) -> Step:
    """Keep the parameters in variables, as in TensorFlow."""
    import jax

    import evenfeed as tf

    # Each replica assigns its copy, and all assign the same: the gradients are reduced before.
    warnings.filterwarnings("ignore", "The variable .* has no aggregation")
    with strategy.scope():
        held = {name: tf.Variable(value) for name, value in weights().items()}

    def local(x: Any, y: Any) -> Any:
        context = tf.distribute.get_replica_context()
        params = {name: variable.value() for name, variable in held.items()}
        loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
        loss, gradients = context.all_reduce("MEAN", (loss, gradients))
        for name, variable in held.items():
            variable.assign_sub(RATE * gradients[name])
        return loss

    @tf.function
    def step(x: Any, y: Any) -> Any:
        return strategy.reduce("MEAN", strategy.run(local, args=(x, y)), axis=None)

    given = cycle(parts)
    return lambda: step(*next(given))


def distributed(strategy: Any, rows: int) -> list[Any]:
    """Return global batches on the replicas."""
    import evenfeed as tf

    data = [tf.data.Dataset.from_tensors(batch) for batch in batches(rows)]
    steps = [strategy.experimental_distribute_dataset(each) for each in data]
    return [next(iter(each)) for each in steps]


def in_jax(seconds: float) -> dict[str, float]:
    """Compare evenfeed's two ways with the hand-written one, on the same batches."""
    import jax

    strategy = replicas(2)
    parts = distributed(strategy, 256)
    steps = {
        "by hand": by_hand(strategy, parts),
        "variables": with_variables(strategy, parts),
        "tree": with_tree(strategy, parts),
    }
    return rates_of(steps, seconds, jax.block_until_ready)


def uneven(seconds: float) -> dict[str, float]:
    """Compare a global batch that four replicas cannot share evenly with one that they can."""
    import jax

    strategy = replicas(4)
    steps = {
        f"G={rows}": with_variables(strategy, distributed(strategy, rows)) for rows in (256, 250)
    }
    return rates_of(steps, seconds, jax.block_until_ready)


def empty(seconds: float) -> dict[str, float]:
    """Compare steps that do nothing: what is left is the way to the program and back, in microseconds."""
    import jax
    import jax.numpy as jnp

    import evenfeed as tf

    strategy = replicas(2)
    spec = jax.sharding.PartitionSpec("replica")
    whole = jax.device_put(np.zeros((256, 4), np.float32), strategy.sharding("replica"))
    value, alone = tf.distribute.PerReplica(array=whole), jnp.zeros((128, 4))

    def same(x: Any) -> Any:
        return x

    mapped = jax.jit(
        jax.shard_map(same, mesh=strategy.mesh, in_specs=spec, out_specs=spec, check_vma=False)
    )
    function = tf.function(lambda x: strategy.run(same, args=(x,)))
    steps = {
        "raw, 2 replicas": partial(mapped, whole),
        "evenfeed, 2 replicas": partial(function, value),
        "raw, 1 replica": partial(jax.jit(same), alone),
        "evenfeed, 1 replica": partial(tf.function(same), alone),
    }
    many = {name: partial(_repeated, step) for name, step in steps.items()}
    rates = rates_of(many, seconds, jax.block_until_ready)
    return {name: 1e6 / (100 * rate) for name, rate in rates.items()}


def _repeated(step: Step) -> Any:
    for _ in range(99):
        step()
    return step()


# --- TensorFlow --------------------------------------------------------------------------------


def in_tensorflow(seconds: float) -> dict[str, float]:
    """Train with TensorFlow's MirroredStrategy."""
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        held = {
            name: tf.Variable(value, aggregation=tf.VariableAggregation.MEAN)
            for name, value in weights().items()
        }

    def local(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(x @ held["w0"] + held["b0"])
            logits = hidden @ held["w1"] + held["b1"]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        gradients = tape.gradient(loss, held)
        for name, variable in held.items():
            variable.assign_sub(RATE * gradients[name])
        return loss

    @tf.function
    def step(x: Any, y: Any) -> Any:
        return strategy.reduce("MEAN", strategy.run(local, args=(x, y)), axis=None)

    data = [tf.data.Dataset.from_tensors(batch) for batch in batches(256)]
    given = cycle([next(iter(strategy.experimental_distribute_dataset(each))) for each in data])
    return rates_of({"MirroredStrategy": lambda: step(*next(given))}, seconds, lambda x: x.numpy())


VARIANTS = {"jax": in_jax, "uneven": uneven, "empty": empty, "tensorflow": in_tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
