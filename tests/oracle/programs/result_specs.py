"""The dtype and the shape of what functions return, however they run: with lists, and with shapes that are promised."""

import operator

import numpy as np


def _images(tf, dtype):
    return tf.data.Dataset.from_tensor_slices(np.arange(24, dtype=dtype).reshape(2, 2, 2, 3))


def lists(tf, ask):
    floats, whole = _images(tf, np.float32), _images(tf, np.int64)
    functions = {
        "x - list": lambda x: x - [0.5, 0.25, 2.0],
        "list - x": lambda x: [0.5, 0.25, 2.0] - x,
        "list * x": lambda x: [2.0, 3.0, 4.0] * x,
        "x / list of ints": lambda x: x / [1, 2, 4],
        "x + tuple": lambda x: operator.add(x, (1.0, 2.0, 3.0)),
        "x > list": lambda x: x > [1.0, 2.0, 3.0],
        "x + array of float64": lambda x: x + np.array([0.5, 0.25, 2.0]),
        "x ** list": lambda x: x ** [1, 2, 2],
    }
    of_ints = {
        "int64 + list": lambda x: operator.add(x, [1, 2, 3]),
        "int64 // list": lambda x: x // [1, 2, 3],
        "int64 / list": lambda x: x / [1, 2, 4],
        "2 ** int64": lambda x: 2**x,
    }
    return {
        **{name: ask(lambda f=f: floats.map(f).element_spec) for name, f in functions.items()},
        **{
            f"{name}: values": ask(lambda f=f: list(floats.map(f))) for name, f in functions.items()
        },
        **{name: ask(lambda f=f: whole.map(f).element_spec) for name, f in of_ints.items()},
        "outside of functions": ask(lambda: tf.constant([1.0, 2.0]) - [0.5, 0.25]),
        "equal": ask(lambda: tf.constant([1, 2]) == [1, 3]),
    }


def promises(tf, ask):
    def loaded(x):
        return tf.numpy_function(lambda image: image / np.float32(255), [x], tf.float32)

    def shaped(x):
        y = loaded(x)
        y.set_shape([2, 2, 3])
        return y

    functions = {
        "ensure_shape": lambda x: tf.ensure_shape(loaded(x), [2, 2, 3]),
        "ensure_shape in part": lambda x: tf.ensure_shape(loaded(x), [None, 2, 3]),
        "set_shape": shaped,
        "reshape": lambda x: tf.reshape(loaded(x), [4, 3]),
        "reshape with -1": lambda x: tf.reshape(loaded(x), [-1, 3]),
        "arithmetic behind it": lambda x: shaped(x) / 2.0 - [0.5, 0.4, 0.3],
        "two": lambda x: (shaped(x), tf.reshape(shaped(x), [12])),
    }
    images = _images(tf, np.float32)
    return {
        **{name: ask(lambda f=f: images.map(f).element_spec) for name, f in functions.items()},
        **{
            f"{name}, no elements": ask(lambda f=f: images.take(0).map(f).element_spec)
            for name, f in functions.items()
        },
    }


def wrong_shapes(tf, ask):
    x = tf.constant([1.0, 2.0])
    return {
        "set_shape": ask(lambda: x.set_shape([3])),
        "set_shape in part": ask(lambda: x.set_shape([None])),
        "rank": ask(lambda: x.set_shape([1, 2])),
    }


def sequences(tf, ask):
    counts = tf.data.Dataset.range(1)
    return {
        "a list": ask(lambda: counts.map(lambda _: [1, 2]).element_spec),
        "a range": ask(lambda: counts.map(lambda _: range(2)).element_spec),
        "an uneven list": ask(counts.map, lambda _: ([[1], [2, 3]],)),
    }
