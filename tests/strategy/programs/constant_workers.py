"""Functions with a different Python constant on each worker. Each worker prints its results; the test compares them."""

import json
import sys
from typing import Any

import numpy as np

import evenfeed as tf


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id
    synchronization = tf.VariableSynchronization.ON_READ
    with strategy.scope():
        v = tf.Variable([0, 0], aggregation=tf.VariableAggregation.SUM)
        on_read = tf.Variable(
            [0, 0], aggregation=tf.VariableAggregation.SUM, synchronization=synchronization
        )

    def constant() -> Any:
        return tf.ones([2], tf.int32) * worker

    def context() -> Any:
        return tf.distribute.get_replica_context()

    def merged() -> Any:
        return context().merge_call(lambda s, x: s.reduce("SUM", x, axis=None), args=(constant(),))

    def assigned() -> Any:
        strategy.run(lambda: v.assign_add(constant()))
        return v.value()

    def read() -> Any:
        strategy.run(lambda: on_read.assign(constant()))
        return on_read.read_value()

    def with_data(x: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(lambda a: a * worker, args=(x,)), axis=None)

    def of_run(step: Any) -> Any:
        return lambda: strategy.experimental_local_results(strategy.run(step))[0]

    asked = {
        "reduce of a run": lambda: strategy.reduce("SUM", strategy.run(constant), axis=None),
        "gather of a run": lambda: strategy.gather(strategy.run(constant), axis=0),
        "mean of what a worker has": lambda: strategy.reduce(
            "MEAN", tf.cast(constant(), tf.float32), axis=None
        ),
        "all_reduce": of_run(lambda: context().all_reduce("SUM", constant())),
        "all_gather": of_run(lambda: context().all_gather(constant(), axis=0)),
        "merge_call": of_run(merged),
        "assigned": assigned,
        "read": read,
    }
    seen = {
        label: np.asarray(tf.function(function)()).tolist() for label, function in asked.items()
    }
    seen["with data"] = np.asarray(tf.function(with_data)(tf.constant([3, 4]))).tolist()
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
