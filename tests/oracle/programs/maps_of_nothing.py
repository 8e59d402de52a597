"""Maps whose functions need values, over datasets that have none, or none at which they succeed."""

import numpy as np


def _same(tf, dtype):
    return lambda x: tf.numpy_function(lambda value: value, [x], dtype)


def _broken(tf):
    def fail(_):
        raise ValueError

    return lambda x: tf.numpy_function(fail, [x], tf.int64)


def specs(tf, ask):
    nothing = tf.data.Dataset.range(0)

    def two(x):
        return tf.numpy_function(lambda value: (value, "a"), [x], [tf.int64, tf.string])

    def shaped(x):
        return tf.ensure_shape(_same(tf, tf.int64)(x), [None, 3])

    return {
        "int64": ask(lambda: nothing.map(_same(tf, tf.int64)).element_spec),
        "string": ask(lambda: nothing.map(_same(tf, tf.string)).element_spec),
        "py_function": ask(
            lambda: nothing.map(lambda x: tf.py_function(lambda v: v, [x], tf.float32)).element_spec
        ),
        "two": ask(lambda: nothing.map(two).element_spec),
        "with a shape": ask(lambda: nothing.map(shaped).element_spec.dtype),
    }


def elements(tf, ask):
    ds = tf.data.Dataset
    nothing, same, broken = ds.range(0), _same(tf, tf.int64), _broken(tf)

    def late(x):
        def call(value):
            if value < 20:
                raise ValueError
            return np.full([3], value)

        return tf.numpy_function(call, [x], tf.int64)

    sources = {
        "range(0)": lambda: nothing,
        "take(0)": lambda: ds.range(5).take(0),
        "filter": lambda: ds.range(5).filter(lambda _: False),
        "generator": lambda: ds.from_generator(
            lambda: iter([]), output_signature=tf.TensorSpec([], tf.int64)
        ),
    }
    return {
        **{name: ask(lambda make=make: list(make().map(same))) for name, make in sources.items()},
        "batch": ask(lambda: list(nothing.map(same).batch(2))),
        "map": ask(lambda: list(nothing.map(same).map(lambda x: x + 1))),
        "filter": ask(lambda: list(nothing.map(same).filter(lambda x: x > 0))),
        "concatenate": ask(lambda: list(nothing.map(same).concatenate(ds.range(2)))),
        "zip": ask(lambda: list(ds.zip((nothing.map(same), ds.range(2))))),
        "flat_map": ask(lambda: list(nothing.flat_map(lambda x: ds.from_tensors(same(x))))),
        "scan": ask(lambda: list(nothing.scan(np.int64(0), lambda s, x: (s, same(x))))),
        "all fail": ask(lambda: list(ds.range(3).map(broken).ignore_errors())),
        "all fail, in parallel": ask(lambda: list(ds.range(3).map(broken, 2).ignore_errors())),
        "all fail, in batches": ask(lambda: list(ds.range(3).map(broken).ignore_errors().batch(2))),
        "all fail in flat_map": ask(
            lambda: list(ds.range(3).flat_map(lambda x: ds.from_tensors(broken(x))).ignore_errors())
        ),
        "the first 20 fail": ask(lambda: list(ds.range(22).map(late).ignore_errors())),
    }
