"""Datasets, asked what TensorFlow's own unit tests of tf.data ask."""

import numpy as np


def _numbers(dataset):
    return [int(x) for x in dataset]


def interleaving(tf, ask):
    ds = tf.data.Dataset

    def turns(cycle=None, calls=None, block=1):
        twice = lambda x: ds.from_tensors(x).repeat(2)
        return _numbers(ds.range(5).interleave(twice, cycle, block, num_parallel_calls=calls))

    orders = {
        f"{cycle} in turn, {block} of each, {calls} calls": ask(turns, cycle, calls, block)
        for cycle in (1, 2, 7)
        for block in (1, 2, 3)
        for calls in (None, 1, 2)
    }
    return orders | {
        "1 call": ask(turns, None, 1),
        "AUTOTUNE in turn, 1 call": ask(turns, tf.data.AUTOTUNE, 1),
        "AUTOTUNE calls": ask(turns, 2, tf.data.AUTOTUNE),
        "more calls than datasets": ask(turns, 2, 3),
        "no calls": ask(turns, 2, 0),
        "-2 calls": ask(turns, 2, -2),
        "none in turn": ask(turns, 0, 1),
        "none of each": ask(turns, 2, 1, 0),
    }


def sizes(tf, ask):
    ds = tf.data.Dataset
    endless, none = ds.range(5).repeat(), ds.range(0)

    def one(x):
        return ds.from_tensors(x)

    def pairs(dataset):
        return dataset.group_by_window(lambda x: x % 2, lambda _, xs: xs.batch(2), window_size=2)

    def buckets(dataset):
        return dataset.map(lambda x: [x]).bucket_by_sequence_length(lambda _: 1, [3], [2, 2])

    made = {
        "interleave": lambda d: d.interleave(one, 2),
        "parallel interleave": lambda d: d.interleave(one, 2, num_parallel_calls=2),
        "older parallel_interleave": lambda d: d.apply(
            tf.data.experimental.parallel_interleave(one, 2)
        ),
        "flat_map": lambda d: d.flat_map(one),
        "group_by_window": pairs,
        "bucket_by_sequence_length": buckets,
    }
    return {
        f"{name} of {which}": ask(lambda make=make, d=d: int(make(d).cardinality()))
        for name, make in made.items()
        for which, d in {"an endless one": endless, "none": none, "five": ds.range(5)}.items()
    }


def caches(tf, ask):
    def last_read():
        dataset = tf.data.Dataset.range(10).shuffle(10).cache()
        iterator = iter(dataset)
        first = [int(next(iterator)) for _ in range(10)]
        return first == _numbers(dataset)

    return {"complete with the last element": ask(last_read)}


def keys_of_groups(tf, ask):
    ds, numbers = tf.data.Dataset, tf.data.Dataset.range(4)
    reducer = tf.data.experimental.Reducer(
        lambda key: np.int64(0), lambda state, x: state + x, lambda state: state
    )

    def windows(key):
        return len(list(numbers.group_by_window(key, lambda _, xs: xs.batch(2), 2)))

    def reduced(key):
        found = numbers.apply(tf.data.experimental.group_by_reducer(key, reducer))
        return _numbers(found)

    keys = {
        "an int64": lambda x: x,
        "a vector": lambda x: tf.stack([x, x]),
        "a float": lambda x: tf.cast(x, tf.float32),
        "a bool": lambda x: x > 1,
        "a text": tf.strings.as_string,
    }
    values = {
        "a Python float": lambda _: 1.5,
        "a Python text": lambda _: "a",
        "a dict": lambda x: {"a": x},
        "None": lambda _: None,
    }
    lengths = ds.range(1, 12).map(lambda n: tf.sparse.from_dense(tf.ones([n], tf.int32)))
    buckets = lengths.bucket_by_sequence_length(
        lambda row: tf.shape(row)[0], [4, 8], [2, 2, 2], no_padding=True
    )
    return (
        {f"{name} in group_by_window": ask(windows, key) for name, key in (keys | values).items()}
        | {f"{name} in group_by_reducer": ask(reduced, key) for name, key in keys.items()}
        | {"lengths of sparse rows": ask(lambda: [x.dense_shape.numpy() for x in buckets])}
        | {
            f"{cycle} in turn, older parallel_interleave": ask(
                lambda cycle=cycle: _numbers(
                    numbers.apply(tf.data.experimental.parallel_interleave(ds.from_tensors, cycle))
                )
            )
            for cycle in (-2, -1, 0, 1)
        }
    )
