"""Two workers that do different things. Each prints its errors; the test compares them."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from jax._src import distributed

import evenfeed as tf


def told(call: Any) -> str:
    """Return the class and message of the error that a call raises."""
    try:
        call()
    except tf.errors.OpError as error:
        return f"{type(error).__name__}: {error.message}"
    return "nothing"


def main() -> None:
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=4)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    worker = strategy.cluster_resolver.task_id
    seen: dict[str, Any] = {}

    def begin(dataset: Any) -> Any:
        return lambda: next(iter(strategy.experimental_distribute_dataset(dataset)))

    rows = tf.data.Dataset.range(8 + 2 * worker)
    seen["cardinality"] = told(begin(rows.batch(2)))
    kinds = [rows.map(lambda x: tf.cast(x, tf.float32)), rows]
    seen["dtype"] = told(begin(kinds[worker].take(8).batch(2)))

    def unsized(count: int) -> Any:
        spec = tf.TensorSpec([], tf.int64)
        made = tf.data.Dataset.from_generator(lambda: iter(np.arange(count)), output_signature=spec)
        return strategy.distribute_datasets_from_function(lambda _: made.batch(1))

    many = unsized(300 + worker)
    seen["steps"] = [sum(1 for _ in many), sum(1 for _ in many)]
    # Of many rounds, only the texts of the last are kept.
    seen["keys"] = len(distributed.global_state.client.key_value_dir_get("evenfeed/input"))
    few = unsized(3)

    @tf.function
    def total(x: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("sum", x)

    def meet() -> Any:
        return float(
            strategy.experimental_local_results(strategy.run(total, args=(np.float32(1.0),)))[0]
        )

    seen["together"] = meet()
    if worker == 1:
        distributed.global_state.client.blocking_key_value_get("seen", 60_000)
    else:
        waiting = ThreadPoolExecutor().submit(told, lambda: list(few))
        seen["collective"] = told(meet)
        seen["silent"] = waiting.result()
        distributed.global_state.client.key_value_set("seen", "yes")
    sys.stdout.write(f"seen {json.dumps(seen)}\n")
    sys.stdout.flush()
    if worker == 1:
        raise KeyError("model")
    text = "Deadline"
    while text.startswith("Deadline"):
        text = told(lambda: list(few))
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
