"""Iterators and functions of datasets, as TensorFlow's own tests of tf.data use them."""

import tempfile
from pathlib import Path

import numpy as np


def _spec_and_elements(dataset):
    return dataset.element_spec, list(dataset)


def positions_of_numpy_iterators(tf, ask):
    def resumed(make, passed):
        iterator = make().as_numpy_iterator()
        for _ in range(passed):
            next(iterator)
        state = iterator.save()
        rest = [np.asarray(x) for x in iterator]
        iterator.restore(state)
        return rest, [np.asarray(x) for x in iterator]

    range_ = tf.data.Dataset.range
    return {
        "at the beginning": ask(resumed, lambda: range_(4), 0),
        "in the middle": ask(resumed, lambda: range_(7).batch(2).repeat(2), 3),
        "at the end": ask(resumed, lambda: range_(4), 4),
        "next": ask(lambda: range_(4).as_numpy_iterator().next()),
        "next of an iterator": ask(lambda: iter(range_(4)).next()),
    }


def ends_of_generators(tf, ask):
    gone = []

    class Ones:
        def __iter__(self):
            return self

        def __next__(self):
            return 1

        def __del__(self):
            gone.append(True)

    def ended():
        iterator = iter(tf.data.Dataset.from_generator(Ones, tf.int64).take(2))
        return [int(next(iterator)), int(next(iterator)), next(iterator, None), gone]

    return {"let go": ask(ended)}


def numpy_iterators_of_other_values(tf, ask):
    inner = tf.data.Dataset.range(3)
    optional = tf.experimental.Optional.from_value(1)
    return {
        "datasets": ask(lambda: tf.data.Dataset.from_tensors(inner).as_numpy_iterator()),
        "windows": ask(lambda: inner.window(2).as_numpy_iterator()),
        "optionals": ask(lambda: tf.data.Dataset.from_tensors((1, optional)).as_numpy_iterator()),
    }


def lists_in_functions(tf, ask):
    data = tf.data.Dataset
    numbers = data.from_tensor_slices((np.arange(2), np.arange(2.0)))
    pair = [data.range(2), data.range(3)]
    return {
        "flat_map": ask(
            lambda: _spec_and_elements(
                numbers.flat_map(lambda x, y: data.from_tensors(([x], {"y": [[y]]})))
            )
        ),
        "interleave": ask(
            lambda: _spec_and_elements(
                numbers.interleave(lambda x, y: data.from_tensors([x, x]), cycle_length=1)
            )
        ),
        "slices of datasets": ask(
            lambda: list(
                data.from_tensors(pair)
                .flat_map(data.from_tensor_slices)
                .flat_map(lambda inner: inner)
            )
        ),
    }


def single_values_in_numpy_function(tf, ask):
    data = tf.data.Dataset
    names = {0: b"zero", 1: b"one"}
    call = tf.numpy_function
    kinds = lambda *values: " ".join(type(value).__name__ for value in values).encode()
    return {
        "kinds": ask(
            lambda: list(
                data.from_tensors((np.int64(3), np.float32(1.5), "a", True, [1], ["a"])).map(
                    lambda *parts: call(kinds, parts, tf.string)
                )
            )
        ),
        "a key": ask(
            lambda: list(data.range(2).map(lambda x: call(lambda v: names[v], [x], tf.string)))
        ),
        "a factor of a list": ask(
            lambda: list(
                data.range(1, 3).map(lambda x: call(lambda v: np.asarray([v] * v), [x], tf.int64))
            )
        ),
        "in a filter": ask(
            lambda: list(data.range(3).filter(lambda x: call(lambda v: v in {1}, [x], tf.bool)))
        ),
    }


def groups_of_each_key(tf, ask):
    numbers = tf.data.Dataset.range(6)
    rows = tf.data.Dataset.from_generator(
        lambda: ([1] * length for length in range(1, 7)), tf.int32, [None]
    )
    length = lambda row: tf.shape(row)[0]
    padded = lambda: rows.bucket_by_sequence_length(
        length, [3, 7], [2, 2, 2], pad_to_bucket_boundary=True
    )
    same = lambda _, group: group.batch(3, drop_remainder=True)
    return {
        "one size": ask(
            lambda: _spec_and_elements(
                numbers.group_by_window(lambda x: x % 2, same, window_size=3)
            )
        ),
        "padded to boundaries": ask(lambda: _spec_and_elements(padded())),
    }


def folders(tf, ask):
    def with_folder(use):
        with tempfile.TemporaryDirectory() as folder:
            return use(str(Path(folder) / "here"))

    range_ = tf.data.Dataset.range
    snapshot = lambda **how: with_folder(lambda path: list(range_(3).snapshot(path, **how)))
    return {
        "a tensor for a cache": ask(
            with_folder, lambda path: list(range_(3).cache(tf.constant(path)))
        ),
        "text for a shard": ask(lambda: snapshot(shard_func=lambda x: "no number")),
        "a reader of something else": ask(lambda: snapshot(reader_func=lambda shards: shards + 1)),
        "a folder that is a dataset": ask(lambda: range_(3).save(range_(3))),
    }


def batches_of_nothing(tf, ask):
    rows = tf.data.Dataset.range(8).batch(4, drop_remainder=True)
    read = lambda *how: ask(lambda: _spec_and_elements(rows.rebatch(*how)))
    return {
        "the last": read([1, 1, 1, 1, 0]),
        "the first": read([0, 3]),
        "the second": read([3, 0], True),
    }
