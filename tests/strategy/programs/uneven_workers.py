"""Runs two workers with two replicas each, whose parts differ in length. Each prints its results."""

import json
import sys
import warnings
from functools import cache
from typing import Any

import jax
import numpy as np

import evenfeed as tf

seen: dict[str, Any] = {}
messages: list[str] = []


@cache
def strategy() -> Any:
    return tf.distribute.MultiWorkerMirroredStrategy()


def worker() -> int:
    return strategy().cluster_resolver.task_id


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return value.decode()
    return np.asarray(value).tolist()


def local(value: Any) -> Any:
    return plain(strategy().experimental_local_results(value))


def refused(call: Any, line: int = 0) -> str:
    """Return the class and one line of the error that a call raises."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - compared by the test
        return f"{type(error).__name__}: {str(error).splitlines()[line]}"
    return "nothing"


def count_messages() -> None:
    """Record all messages to the other worker in `messages`, except those of the input."""
    session: Any = strategy().extended.replicas.session
    tell = session._exchange

    def counted(text: str) -> list[str]:
        messages.append(text)
        return tell(text)

    session._exchange = counted


def context() -> Any:
    return tf.distribute.get_replica_context()


def lengths(context: Any) -> Any:
    return tf.range(context.replica_id_in_sync_group + 1)


def batches(rows: int, size: int, policy: str = "DATA") -> Any:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = getattr(
        tf.data.experimental.AutoShardPolicy, policy
    )
    dataset = tf.data.Dataset.range(rows).map(lambda x: tf.cast(x, tf.float32)).batch(size)
    return strategy().experimental_distribute_dataset(dataset.with_options(options))


def see_steps() -> None:
    """Compiled steps on datasets: even steps, then uneven ones, without messages of our own."""
    aggregations = tf.VariableAggregation
    with strategy().scope():
        weight = tf.Variable(2.0, aggregation=aggregations.MEAN)
        rows = tf.Variable(0, aggregation=aggregations.SUM)
        first = tf.Variable(0.0, aggregation=aggregations.ONLY_FIRST_REPLICA)
        counter = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=aggregations.SUM,
        )
    traced: list[Any] = []

    def step(x: Any) -> Any:
        traced.append(x.shape)
        gradient = jax.grad(lambda w: tf.reduce_sum(x * w))(weight.value())
        total = context().all_reduce("sum", gradient)
        weight.assign(total)
        rows.assign_add(tf.constant(x.shape[0]))
        first.assign(tf.reduce_sum(x))
        counter.assign_add(tf.reduce_sum(x))
        return total, x * 2, context().all_reduce("sum", x.shape[0]) / 4

    compiled = tf.function(step)

    @tf.function
    def whole(x: Any) -> Any:
        total, doubled, count = strategy().run(step, args=(x,))
        return (
            strategy().reduce("MEAN", total, axis=None),
            strategy().reduce("SUM", doubled, axis=0),
            strategy().gather(doubled, axis=0),
            strategy().reduce("MEAN", count, axis=None),
        )

    messages.clear()
    for policy in ("DATA", "OFF"):
        outs = [strategy().run(compiled, args=(x,)) for x in batches(18, 8, policy)]
        seen[f"steps, {policy}"] = [[local(part) for part in out] for out in outs]
    seen["variables"] = [plain(v.numpy()) for v in (weight, rows, first, counter)]
    count = len(traced)
    for x in batches(18, 8):  # shapes that were compiled before
        strategy().run(compiled, args=(x,))
    seen["traced again"] = len(traced) - count
    seen["whole functions"] = [plain(whole(x)) for x in batches(18, 8)]
    seen["messages of steps"] = len(messages)


def see_ragged() -> None:
    """Ragged and sparse rows stay on the host. Row x has the numbers from 0 to x - 1."""
    rows = tf.ragged.range(np.arange(7))
    for policy in ("DATA", "OFF"):
        data = tf.data.Dataset.from_tensor_slices((np.arange(7), rows, rows.to_sparse()))
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = getattr(
            tf.data.experimental.AutoShardPolicy, policy
        )
        steps = strategy().experimental_distribute_dataset(data.batch(4).with_options(options))
        seen.setdefault("spec of rows", repr(steps.element_spec[1].value_specs[0]))
        for filtered in (False, True):
            if filtered:  # the workers do not know how many rows are left
                data = data.filter(lambda x, *_: x > 0)
                steps = strategy().experimental_distribute_dataset(
                    data.batch(4).with_options(options)
                )
            found = []
            for x, ragged, sparse in steps:
                parts = map(strategy().experimental_local_results, (x, ragged, sparse))
                found.append([_row_texts(*part) for part in zip(*parts, strict=True)])
            seen[f"rows, {policy}, {filtered}"] = found

    def step(x: Any, ragged: Any, _: Any) -> Any:
        return context().all_reduce("sum", tf.cast(tf.reduce_sum(ragged.to_tensor()), tf.int32))

    data = tf.data.Dataset.from_tensor_slices((np.arange(7), rows, rows.to_sparse())).batch(4)
    steps = strategy().experimental_distribute_dataset(data)
    seen["sums of rows"] = [local(strategy().run(step, args=x)) for x in steps]


def _row_texts(x: Any, ragged: Any, sparse: Any) -> list[Any]:
    dense = np.asarray(tf.sparse.to_dense(sparse))
    lists = [row[:number].tolist() for row, number in zip(dense, np.asarray(x), strict=True)]
    return [plain(x), ragged.to_list(), lists]


def see_values() -> None:
    """Values that did not come from a dataset."""
    long = strategy().experimental_distribute_values_from_function(lengths)
    messages.clear()
    add = tf.function(lambda x: (x + 1, context().all_reduce("sum", tf.reduce_sum(x))))
    seen["made by a function"] = [local(part) for part in strategy().run(add, args=(long,))]
    seen["again"] = [local(part) for part in strategy().run(add, args=(long,))]
    seen["messages of values"] = len(messages)
    join = tf.function(lambda x: context().all_gather(x, axis=0))
    seen["joined inside"] = local(strategy().run(join, args=(long,)))
    own = np.arange(2.0 + worker(), dtype=np.float32)  # another length on each worker
    total = tf.function(lambda x: context().all_reduce("sum", tf.reduce_sum(x)))
    seen["plain"] = local(strategy().run(total, args=(own,)))
    same = tf.constant([1.0, 2.0])
    messages.clear()
    for _ in range(3):
        strategy().run(total, args=(same,))
    seen["messages of one plain array"] = len(messages)
    reduce = tf.function(lambda x: strategy().reduce("MEAN", x, axis=None))
    seen["mean of a plain value in a function"] = plain(reduce(tf.constant([1.0, 2.0 + worker()])))
    texts = strategy().experimental_distribute_values_from_function(
        lambda c: np.array([b"\xff%d" % c.replica_id_in_sync_group], object)
    )
    seen["texts"] = [text.decode("latin-1") for text in strategy().gather(texts, axis=0)]
    gradient = jax.grad(lambda x: (context().all_gather(x, 0) * tf.range(10.0)).sum())
    longs = strategy().experimental_distribute_values_from_function(
        lambda c: tf.cast(lengths(c), tf.float32)
    )
    seen["gradient of all_gather"] = local(strategy().run(gradient, args=(longs,)))


def see_refused() -> None:
    """Errors that would crash the processes are raised on both workers."""
    long = strategy().experimental_distribute_values_from_function(lengths)
    x = strategy().experimental_distribute_values_from_function(lambda _: tf.zeros([2 + worker()]))
    sums = {"eager": lambda x: context().all_reduce("sum", x)}
    seen["sum of lengths"] = refused(lambda: strategy().reduce("SUM", long, axis=None))
    seen["other axes"] = refused(lambda: strategy().gather(x, axis=1))
    seen["eager sum"] = refused(lambda: strategy().run(sums["eager"], args=(x,)))
    seen["compiled sum"] = refused(lambda: strategy().run(tf.function(sums["eager"]), args=(x,)))
    seen["in a jit"] = refused(lambda: strategy().run(jax.jit(sums["eager"]), args=(tf.zeros([]),)))
    seen["one array"] = refused(lambda: long.array)

    def begin() -> None:
        with strategy().scope():
            tf.Variable(np.zeros(2 + worker(), np.float32), name="v")

    seen["variable"] = refused(begin)
    scalars = tf.data.Dataset.range(8)
    seen["scalars"] = refused(lambda: strategy().experimental_distribute_dataset(scalars), -1)


def see_variables() -> None:
    """Values that only some replicas decide, and values that each decides for itself."""
    aggregations = tf.VariableAggregation
    on_read = tf.VariableSynchronization.ON_READ
    with strategy().scope():
        first = tf.Variable(
            0.0, synchronization=on_read, aggregation=aggregations.ONLY_FIRST_REPLICA
        )
        alone = tf.Variable(0.0, name="alone")
    for way in (lambda fn: fn, tf.function):

        def update() -> None:
            number = tf.cast(context().replica_id_in_sync_group, tf.float32)
            first.assign(number + 5)
            alone.assign(number + 1)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                strategy().run(way(update))
        seen.setdefault("warned", []).append(
            [
                str(w.message).partition(" has ")[0]
                for w in caught
                if "aggregation" in str(w.message)
            ]
        )
        seen.setdefault("first on read", []).append(plain(first.numpy()))
        seen.setdefault("alone", []).append(local(alone))
    seen["copies"] = [
        float(copy.read_value()) for copy in strategy().experimental_local_results(first)
    ]


def main() -> None:
    count_messages()
    see_steps()
    see_ragged()
    see_values()
    see_refused()
    see_variables()
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
