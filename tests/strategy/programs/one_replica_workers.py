"""Runs two workers with one replica each. Each prints its results; the test compares them."""

import json
import sys
from typing import Any

import jax
import numpy as np

import evenfeed as tf


def plain(value: Any) -> Any:
    return np.asarray(value).tolist()


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    seen: dict[str, Any] = {}
    own = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([context.replica_id_in_sync_group + 1.0, 0.0])
    )
    data = tf.data.Dataset.from_tensor_slices(np.float32([1, 0, 2, 0])).batch(4)
    (batch,) = strategy.experimental_distribute_dataset(data)

    @tf.function
    def doubled(x: Any) -> Any:
        return strategy.run(lambda a: {"v": a * 2, "sum": tf.reduce_sum(a)}, args=(x,))

    for name, given in {"value": own, "batch": batch}.items():
        for way, result in {
            "in a function": doubled(given),
            "compiled": strategy.run(tf.function(lambda a: {"v": a * 2}), args=(given,)),
            "eager": strategy.run(lambda a: {"v": a * 2}, args=(given,)),
        }.items():
            seen[f"{name}, {way}"] = [isinstance(result["v"], jax.Array), plain(result["v"])]
    first = doubled(own)
    again = doubled(first["v"])
    seen["again"] = plain(again["v"])
    told: list[str] = []
    session = strategy.extended.replicas.session
    tell, session.exchange = (
        session.exchange,
        lambda what, said=None: told.append(what) or tell(what, said),
    )
    doubled(doubled(doubled(again["v"])["v"])["v"])
    session.exchange = tell
    seen["messages"] = told
    seen["reduced"] = plain(strategy.reduce("SUM", again["v"], axis=None))
    seen["gathered"] = plain(strategy.gather(again["v"], axis=0))
    seen["sum of scalars"] = plain(strategy.reduce("SUM", again["sum"], axis=None))
    seen["mean in a function"] = plain(
        tf.function(lambda x: strategy.reduce("MEAN", strategy.run(lambda a: a, (x,)), axis=None))(
            own
        )
    )
    total = tf.function(lambda x: strategy.reduce("SUM", strategy.run(lambda a: a, (x,)), None))(
        own
    )
    seen["closed over"] = plain(strategy.run(lambda a: a + total, args=(own,)))
    with strategy.scope():
        v = tf.Variable([1.0, 1.0], aggregation=tf.VariableAggregation.MEAN)
    seen["assigned"] = plain(v.assign_add([1.0, 2.0]) + 1)
    value = v.value()
    seen["closed over a value"] = plain(strategy.run(lambda a: a * value, args=(own,)))
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
