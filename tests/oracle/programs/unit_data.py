"""Datasets, asked what TensorFlow's own unit tests of tf.data ask."""


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
