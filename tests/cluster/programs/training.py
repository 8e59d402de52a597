"""Trains until a worker is lost, and prints the error. The test decides which worker, and how.

Usage: training.py VICTIM kill|exit|all|cut compiled|uneven|eager|input|loop|fit
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import evenfeed as tf

LAST_STEP = 5


def go(how: str) -> None:
    """End this worker."""
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "exit":
        os._exit(0)
    elif how == "all":  # as if its container were removed
        os.killpg(os.getpgid(0), signal.SIGKILL)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def batches(strategy: Any, how: str) -> Iterator[Any]:
    """Iterate over data of unknown size: the workers agree on each step."""

    def rows() -> Iterator[Any]:
        for number in range(10**6):
            if number == LAST_STEP:
                go(how)
            yield np.float32(number)

    def dataset(_: Any) -> Any:
        return tf.data.Dataset.from_generator(
            rows, output_signature=tf.TensorSpec([], tf.float32)
        ).batch(1)

    return iter(strategy.distribute_datasets_from_function(dataset))


def fit(strategy: Any, how: str) -> Any:
    """Fit a model until a worker is lost. Return the weights that are left."""
    with strategy.scope():
        layer = tf.keras.layers.Dense(2, kernel_initializer="zeros", use_bias=False)
        model = tf.keras.Sequential([tf.keras.Input((1,)), layer])
    model.compile(tf.keras.optimizers.SGD(0.5), lambda _, y: -2 * tf.reduce_sum(y, -1))
    end = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: go(how) if batch == LAST_STEP else None
    )
    x = np.ones([2, 1], np.float32)
    try:
        model.fit(
            tf.data.Dataset.from_tensors((x, x)).repeat(),
            steps_per_epoch=10**6,
            verbose=0,
            callbacks=[end],
        )
    except tf.errors.UnavailableError as error:
        say(f"told {error.message}")
    return model.get_weights()[0][0]


def main(victim: int, how: str, way: str) -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    how = how if strategy.cluster_resolver.task_id == victim else "stay"
    if way == "fit":
        say(f"saved {fit(strategy, how).tolist()}")
        say("ended")
        return
    with strategy.scope():
        weights = tf.Variable([0.0, 0.0], aggregation=tf.VariableAggregation.SUM)

    def step(x: Any) -> Any:
        weights.assign_add(tf.constant([1.0, 1.0]))
        return tf.distribute.get_replica_context().all_reduce("sum", tf.reduce_sum(x))

    read = float if way == "compiled" else np.asarray  # each waits in its own way
    run = tf.function(step) if way in ("compiled", "uneven") else step
    given: Any = np.float32(1.0)
    if way == "uneven":
        given = strategy.experimental_distribute_values_from_function(
            lambda context: np.ones(1 + context.replica_id_in_sync_group, np.float32)
        )
    steps = 0
    try:
        iterator = batches(strategy, how) if way == "input" else None
        rows = tf.data.Dataset.from_tensor_slices(np.ones(8, np.float32)).batch(2).repeat()
        endless = iter(strategy.experimental_distribute_dataset(rows)) if way == "loop" else None
        while True:
            if steps == LAST_STEP:
                say("steps")
                go(how if iterator is None else "stay")
            if way == "loop":
                strategy.run_steps(step, endless, steps=4)
                steps += 1
                continue
            x = given if iterator is None else next(iterator)
            if iterator is None:
                total = strategy.run(run, args=(x,))
                read(strategy.experimental_local_results(total)[0])
            steps += 1
    except tf.errors.UnavailableError as error:
        say(f"told {error.message}")
    say(f"saved {weights.numpy().tolist()}")
    time.sleep(float(os.environ.get("WORKS_ON", "0")))
    say("ended")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
