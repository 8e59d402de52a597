"""data.experimental.at: which datasets have random access, and what it returns."""

import numpy as np


def accessed(tf, ask):
    """Every kind of dataset, at indices inside and outside of it."""
    data, many = tf.data.Dataset, tf.data.Dataset.range
    datasets = {
        "range": many(5),
        "empty": many(0),
        "tensors": data.from_tensors((1, "a")),
        "list": tf.data.experimental.from_list([7, 8, 9]),
        "list of structures": tf.data.experimental.from_list([{"x": [1.0], "y": "a"}] * 2),
        "slices": data.from_tensor_slices({"x": [1, 2, 3], "y": ["a", "b", "c"]}),
        "map": many(5).map(lambda x: (x * 2, x)),
        "map of Python": many(5).map(lambda x: tf.py_function(lambda v: v + 1, [x], tf.int64)),
        "parallel map": many(5).map(lambda x: x + 1, num_parallel_calls=2),
        "batch": many(5).batch(2),
        "full batches": many(5).batch(2, drop_remainder=True),
        "batch of batches": many(8).batch(2).batch(2),
        "rows of full batches": many(7).batch(3, drop_remainder=True).unbatch(),
        "rows of batches": many(7).batch(3).unbatch(),
        "rows of rows": many(12).batch(2, True).batch(3, True).unbatch().unbatch(),
        "rows of a tensor": data.from_tensors(([5, 6, 7], ["a", "b", "c"])).unbatch(),
        "rows of a map": many(4).map(lambda x: tf.stack([x, -x])).unbatch(),
        "take": many(5).take(3),
        "skip": many(5).skip(3),
        "shard": many(7).shard(3, 1),
        "concatenate": many(3).concatenate(many(2)),
        "zip": data.zip(many(3), many(4)),
        "repeat": many(3).repeat(2),
        "repeat without end": many(3).repeat(),
        "repeat never": many(3).repeat(0),
        "cache": many(5).map(lambda x: x + 1).cache(),
        "prefetch": many(5).prefetch(2),
        "options": many(3).with_options(tf.data.Options()),
        "asserted": many(3).apply(tf.data.experimental.assert_cardinality(3)),
        "all of it": many(5).cache().map(lambda x: x + 1).skip(1).batch(2).repeat(2).prefetch(1),
        "filter": many(5).filter(lambda x: x > 1),
        "flat_map": many(3).flat_map(lambda _: many(2)),
        "interleave": many(3).interleave(lambda _: many(2)),
        "window": many(4).window(2),
        "padded_batch": many(4).padded_batch(2),
        "scan": many(4).scan(np.int64(0), lambda s, x: (s + 1, x)),
        "take_while": many(4).take_while(lambda x: x < 2),
        "random": data.random(seed=1),
        "unique": many(3).unique(),
        "rebatch": many(4).batch(2).rebatch(3),
    }
    at = tf.data.experimental.at
    return {
        f"{label}, {index}": ask(at, dataset, index)
        for label, dataset in datasets.items()
        for index in (0, 1, 2, 7, -1)
    } | {
        "a float": ask(at, many(3), 1.5),
        "text": ask(at, many(3), "1"),
        "shuffled": ask(lambda: sorted(int(at(many(9).shuffle(9, seed=1), i)) for i in range(9))),
        "twice": ask(_twice, at, many(50).shuffle(50)),
    }


def _twice(at, dataset):
    """Random access finds the same order again, whatever is iterated in between."""
    first = [int(at(dataset, index)) for index in range(50)]
    list(dataset)
    return first == [int(at(dataset, index)) for index in range(50)]
