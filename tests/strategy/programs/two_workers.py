"""Runs two workers with two replicas each. Each prints its results; the test compares them."""

import json
import sys
from typing import Any

import numpy as np

import evenfeed as tf


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    return np.asarray(value).tolist()


def see_input(strategy: Any, worker: int, seen: dict[str, Any]) -> None:
    """Record the steps of datasets on this worker's replicas."""
    off = tf.data.Options()
    off.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF

    def own(context: Any) -> Any:
        count = 3 + 4 * context.input_pipeline_id
        return tf.data.Dataset.range(count).filter(lambda x: x >= 0).batch(1)

    def steps(dataset: Any) -> Any:
        return [plain(strategy.experimental_local_results(value)) for value in dataset]

    rows = tf.data.Dataset.range(10).batch(8)
    seen["rows of batches"] = steps(strategy.experimental_distribute_dataset(rows))
    counted = rows.shard(2, worker).with_options(off)
    seen["batches of its own"] = steps(strategy.experimental_distribute_dataset(counted))
    seen["of a function"] = steps(strategy.distribute_datasets_from_function(own))
    mixed = tf.data.Dataset.range(8).shuffle(8).batch(8)
    (value,) = strategy.experimental_distribute_dataset(mixed)
    seen["shuffled"] = sorted(plain(strategy.gather(value, axis=0)))
    padding = tf.distribute.InputOptions(pad_partial_batches=True)

    @tf.function
    def total(x: Any, valid: Any) -> Any:
        context = tf.distribute.get_replica_context()
        return context.all_reduce("sum", tf.reduce_sum(tf.cast(x, tf.float32) * valid))

    padded = strategy.experimental_distribute_dataset(rows, padding)
    sums = [strategy.run(total, args=step) for step in padded]
    seen["padded, compiled"] = [plain(strategy.experimental_local_results(x)) for x in sums]
    seen["states"] = {policy: resumed(strategy, policy) for policy in ("DATA", "LANES", "OFF")}


def resumed(strategy: Any, policy: str) -> Any:
    """Return the state after a step. Checks that another iterator continues from it."""
    options = tf.data.Options()
    policies = tf.data.experimental.AutoShardPolicy
    options.experimental_distribute.auto_shard_policy = getattr(policies, policy)
    options.experimental_distribute.num_lanes = 4
    rows = tf.data.Dataset.range(40).filter(lambda x: x % 4 != 1).batch(8).with_options(options)
    dataset = strategy.experimental_distribute_dataset(rows)
    iterator, again = iter(dataset), iter(dataset)
    next(iterator)
    state = iterator.get_state()
    again.set_state(json.loads(json.dumps(state)))
    for step, other in zip(iterator, again, strict=True):
        local = strategy.experimental_local_results
        assert plain(local(step)) == plain(local(other))
    return state


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id
    seen: dict[str, Any] = {}

    def local(value: Any) -> Any:
        return plain(strategy.experimental_local_results(value))

    x = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([context.replica_id_in_sync_group + 1.0])
    )
    long = strategy.experimental_distribute_values_from_function(
        lambda context: tf.range(context.replica_id_in_sync_group + 1)
    )
    seen["replicas"] = strategy.num_replicas_in_sync
    seen["devices"] = [name.partition("/device")[0] for name in strategy.devices]
    seen["own devices"] = list(strategy.extended.worker_devices)
    seen["saves"] = strategy.extended.should_checkpoint
    seen["values"] = local(x)
    seen["array"] = [list(x.array.shape), len(x), x.replica_count]
    seen["sum"] = plain(strategy.reduce("SUM", x, axis=None))
    seen["mean"] = plain(strategy.reduce("MEAN", x, axis=None))
    seen["uneven sum"] = plain(strategy.reduce("SUM", long, axis=0))
    seen["uneven mean"] = plain(strategy.reduce("MEAN", long, axis=0))
    seen["mean of a plain value"] = plain(
        strategy.reduce("MEAN", tf.constant(worker * 2.0), axis=None)
    )
    seen["gather"] = plain(strategy.gather(x, axis=0))
    seen["uneven gather"] = plain(strategy.gather(long, axis=0))

    def step(value: Any) -> Any:
        context = tf.distribute.get_replica_context()
        return (
            context.replica_id_in_sync_group,
            context.num_replicas_in_sync,
            context.all_reduce("SUM", value),
            context.all_reduce("MEAN", value),
            context.all_gather(value, axis=0),
        )

    seen["eager"] = [local(part) for part in strategy.run(step, args=(x,))]
    seen["compiled"] = [local(part) for part in strategy.run(tf.function(step), args=(x,))]
    seen["uneven all_gather"] = local(
        strategy.run(
            lambda value: tf.distribute.get_replica_context().all_gather(value, axis=0),
            args=(long,),
        )
    )

    aggregations = tf.VariableAggregation
    on_read = tf.VariableSynchronization.ON_READ
    with strategy.scope():
        first = tf.Variable([1.0 + worker, 2.0])
        kinds = {
            name: tf.Variable(0.0, aggregation=getattr(aggregations, name))
            for name in ("SUM", "MEAN", "ONLY_FIRST_REPLICA")
        }
        counter = tf.Variable(0.0, synchronization=on_read, aggregation=aggregations.SUM)
    seen["from the chief"] = [plain(first.values), plain(first.numpy())]
    for way, wrap in {"eager": lambda fn: fn, "compiled": tf.function}.items():

        def update(value: Any) -> Any:
            for variable in kinds.values():
                variable.assign_add(value[0])
            counter.assign_add(value[0])
            return value * first

        results = strategy.run(wrap(update), args=(x,))
        seen[f"results, {way}"] = local(results)
        seen[f"variables, {way}"] = [plain(v.values) for v in kinds.values()]
        seen[f"counter, {way}"] = [plain(counter.values), plain(counter.numpy())]
    first.assign([5.0, 6.0])
    seen["assigned"] = plain(first.values)

    @tf.function
    def whole(value: Any) -> Any:
        return strategy.reduce(
            "SUM", strategy.run(lambda y: y * first[0], args=(value,)), axis=None
        )

    seen["reduced in a function"] = plain(whole(x))
    see_input(strategy, worker, seen)
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
