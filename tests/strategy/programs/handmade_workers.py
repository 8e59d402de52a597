"""Strategies with hand-made per-replica values on each worker. The test compares the results."""

import json
import pickle
import sys
from typing import Any

import jax
import numpy as np

import evenfeed as tf


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    array = np.asarray(value)
    return [text.decode() for text in array.flat] if array.dtype == object else array.tolist()


def said(call: Any) -> str:
    try:
        return f"returned {call()}"
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


class Seen:
    """Records what the strategy returns, in eager code and in a `function`."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy
        self.found: dict[str, Any] = {}

    def each(self, what: str, call: Any, *values: Any) -> None:
        self.found[f"{what}, eager"] = plain(call(*values))
        compiled = tf.function(call)
        self.found[f"{what}, compiled"] = [plain(compiled(*values)) for _ in range(2)]
        self.found[f"{what}, captured"] = plain(tf.function(lambda: call(*values))())

    def run(self, what: str, fn: Any, *values: Any) -> None:
        strategy = self.strategy

        def call(*given: Any) -> Any:
            return strategy.run(fn, args=given)

        local = strategy.experimental_local_results
        self.found[f"{what}, eager"] = plain(local(call(*values)))
        self.found[f"{what}, compiled"] = plain(local(tf.function(call)(*values)))
        self.found[f"{what}, of a function"] = plain(local(strategy.run(tf.function(fn), values)))


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    replicas = strategy.extended.replicas
    seen = Seen(strategy)

    def by_hand(make: Any, *, placed: bool = True) -> Any:
        parts = [make(replica) for replica in replicas.own]
        if placed:
            parts = [jax.device_put(p, replicas.local_devices[r]) for r, p in enumerate(parts)]
        return tf.distribute.PerReplica(parts)

    def total(x: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce("SUM", x.sum())

    even = by_hand(lambda r: np.float32([r + 1]))
    for what, value in {
        "even": even,
        "of the host": by_hand(lambda r: np.float32([r + 1]), placed=False),
        "pickled": pickle.loads(pickle.dumps(even)),
        "regrouped": tf.distribute.PerReplica(strategy.experimental_local_results(even)),
        "a tree": jax.tree.map(lambda x: x * 1, even),
        "uneven": by_hand(lambda r: np.arange(r + 1, dtype=np.float32)),
    }.items():
        seen.each(f"sum of {what}", lambda x: strategy.reduce("SUM", x, axis=0), value)
        seen.each(f"mean of {what}", lambda x: strategy.reduce("MEAN", x, axis=0), value)
        seen.each(f"gather of {what}", lambda x: strategy.gather(x, axis=0), value)
        seen.run(f"run on {what}", total, value)
    seen.each("sum over replicas", lambda x: strategy.reduce("SUM", x, axis=None), even)
    numbers = by_hand(float, placed=False)
    seen.each("sum of numbers", lambda x: strategy.reduce("SUM", x, axis=None), numbers)
    nest = {"a": even, "b": [numbers]}
    seen.each("sum of a nest", lambda x: strategy.reduce("SUM", x, axis=None), nest)
    texts = by_hand(lambda r: np.array([f"text {r}"], object), placed=False)
    seen.found["gather of text"] = plain(strategy.gather(texts, axis=0))
    valid = by_hand(lambda r: np.array([r != 0]))
    seen.found["valid"] = plain(strategy.reduce("MEAN", even, axis=0, valid=valid))

    with strategy.scope():
        variable = tf.Variable([0.0])
    assigned = variable.assign(even)
    seen.found["assigned"] = plain(strategy.experimental_local_results(variable))
    seen.found["sum of what assign returns"] = plain(strategy.reduce("SUM", assigned, axis=None))
    tf.function(lambda: variable.assign_add(even))()
    seen.found["assigned, compiled"] = plain(strategy.experimental_local_results(variable))

    def merged(x: Any) -> Any:
        def merge_fn(strategy: Any, value: Any) -> Any:
            del value
            return even

        return tf.distribute.get_replica_context().merge_call(merge_fn, args=(x,))

    seen.run("merge_call", merged, even)
    many = tf.distribute.PerReplica([np.float32([1])] * (replicas.local_count + 1))
    seen.found["too many parts"] = said(lambda: strategy.reduce("SUM", many, axis=None))
    seen.found["run on too many parts"] = said(lambda: strategy.run(total, args=(many,)))
    alone = tf.distribute.MirroredStrategy(
        [f"CPU:{index}" for index in range(replicas.local_count)]
    )
    if replicas.local_count > 1:
        seen.found["own strategy"] = plain(alone.gather(even, axis=0))
    sys.stdout.write(f"seen {json.dumps(seen.found)}\n")


if __name__ == "__main__":
    main()
