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


def ranks(tf, ask):
    """Elements of any rank keep theirs, and a state may get another one."""
    made = {
        "int": ([1, [2, 3], [[4]]], tf.int32),
        "float": ([[1.5], 2.5, []], tf.float64),
        "text": (["a", ["b", "c"]], tf.string),
        "nothing": ([], tf.int32),
    }
    functions = {
        "itself": lambda x: x,
        "twice": lambda x: (x, {"a": x}),
        "flat": lambda x: tf.reshape(x, [-1]),
        "its shape": tf.shape,
    }
    counts = tf.data.Dataset.range(3)
    folds = {
        "a number": (1, lambda s: tf.stack([s, s])),
        "text": ("a", lambda s: tf.stack([s])),
        "a pair": ((1, [2]), lambda s: (s[0] + 1, tf.stack([s[1]]))),
        "flatter": ([[1, 2]], lambda s: tf.reshape(s, [-1])),
    }
    scans = {
        name: lambda first=first, f=f: counts.scan(first, lambda s, x: (f(s), (s, x)))
        for name, (first, f) in folds.items()
    }
    answers = {}
    for kind, (values, dtype) in made.items():
        data = tf.data.Dataset.from_generator(lambda values=values: iter(values), dtype)
        for name, function in functions.items():
            mapped = data.map(function)
            answers[f"{kind}, {name}: spec"] = ask(lambda mapped=mapped: mapped.element_spec)
            answers[f"{kind}, {name}"] = ask(lambda mapped=mapped: list(mapped))
    for name, make in scans.items():
        answers[f"scan of {name}: spec"] = ask(lambda make=make: make().element_spec)
        answers[f"scan of {name}"] = ask(lambda make=make: list(make()))
    for name, (first, f) in folds.items():
        reduced = ask(lambda first=first, f=f: counts.reduce(first, lambda s, _: f(s)))
        answers[f"reduce of {name}"] = reduced
    return answers


def shapes_of_arguments(tf, ask):
    def loaded(x):
        return tf.numpy_function(lambda row: row, [x], tf.int64)

    def shaped(x, shape):
        y = loaded(x)
        y.set_shape(shape)
        return y

    functions = {
        "set_shape": lambda x: shaped(x, x.shape),
        "set_shape of a list": lambda x: shaped(x, [x.shape[0]]),
        "ensure_shape": lambda x: tf.ensure_shape(loaded(x), x.shape),
    }
    batches = {
        "a short last batch": tf.data.Dataset.range(5).batch(2),
        "a short first batch": tf.data.Dataset.range(1).batch(1),
        "full batches": tf.data.Dataset.range(5).batch(2, drop_remainder=True),
        "no batch": tf.data.Dataset.range(0).batch(2),
    }
    return {
        f"{name}, {label}{what}": ask(lambda d=d, f=f, say=say: say(d.map(f)))
        for name, f in functions.items()
        for label, d in batches.items()
        for what, say in ((": spec", lambda d: d.element_spec), (": values", list))
    }


def reshaped(tf, ask):
    """Ask what `reshape` and `cast` say of bytes that are decoded."""
    rows = tf.data.Dataset.from_tensor_slices([b"abcd", b"efgh", b"ijkl"])

    def spec(function):
        return ask(lambda: rows.map(function).element_spec)

    def decoded(text):
        return tf.io.decode_raw(text, tf.uint8)

    return {
        "decoded": spec(decoded),
        "reshape": spec(lambda t: tf.reshape(decoded(t), [4])),
        "reshape, cast": spec(lambda t: tf.cast(tf.reshape(decoded(t), [2, 2]), tf.float32)),
        "reshape, cast, divided": spec(
            lambda t: tf.cast(tf.reshape(decoded(t), [4]), tf.float32) / 255.0
        ),
        "ensure_shape, cast": spec(lambda t: tf.cast(tf.ensure_shape(decoded(t), [4]), tf.int32)),
        "square": spec(lambda t: tf.square(tf.cast(tf.reshape(decoded(t), [4]), tf.int32))),
        "equal": spec(lambda t: tf.equal(tf.reshape(decoded(t), [4]), 97)),
        "rest": spec(lambda t: tf.reshape(decoded(t), [2, -1])),
    }
