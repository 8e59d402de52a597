"""Functions that get a state or a key: when they fail, and the shapes that they return."""

import tempfile

import numpy as np


def _read(dataset):
    """Return all elements, with the names of the errors that are raised between them."""
    found, iterator = [], iter(dataset)
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001 - every error is an answer
            found.append(type(error).__name__)


def zero_divisors(tf, ask):
    """Integers divided by 0, at the third element or for the key 2."""
    four, two = tf.data.Dataset.range(4), tf.data.Dataset.from_tensors(np.int64(2))
    zero, dividing = np.int64(0), lambda x: 4 // (x - 2)

    def reduced(init, reduce, finalize):
        reducer = tf.data.experimental.Reducer(init, reduce, finalize)
        return _read(two.apply(tf.data.experimental.group_by_reducer(lambda x: x, reducer)))

    def windows(size):
        return two.group_by_window(lambda x: x, lambda _, xs: xs.batch(2), window_size_func=size)

    calls = {
        "scan": lambda: _read(four.scan(zero, lambda s, x: (s + x, dividing(x)))),
        "scan, in the state": lambda: _read(four.scan(zero, lambda s, x: (s + dividing(x), s))),
        "scan, a remainder": lambda: _read(four.scan(zero, lambda s, x: (s, 4 % (x - 2)))),
        "scan, by the state": lambda: _read(four.scan(zero, lambda s, x: (s + 1, x // (s - 2)))),
        "scan, by a constant": lambda: _read(four.scan(zero, lambda s, x: (s + x, s // 2))),
        "scan, of a list": lambda: _read(four.scan(zero, lambda s, x: (s, [4, 5] // (x - 2)))),
        "scan, of an array": lambda: _read(
            four.scan(zero, lambda s, x: (s, np.arange(2) // (x - 2)))
        ),
        "map, by a list": lambda: list(four.map(lambda x: x // [1, 0])),
        "map, a remainder by a list": lambda: list(four.map(lambda x: x % [1, 0])),
        "scan, of a float": lambda: _read(
            four.scan(zero, lambda s, x: (s, 4.0 // tf.cast(x, tf.float32)))
        ),
        "reduce": lambda: four.reduce(zero, lambda s, x: s + dividing(x)),
        "reduce, by the state": lambda: four.reduce(zero, lambda s, x: x // s),
        "reduce, by a constant": lambda: four.reduce(zero, lambda s, x: s + x // 2),
        "init_func": lambda: reduced(dividing, lambda s, x: s + x, lambda s: s),
        "finalize_func": lambda: reduced(lambda _: zero, lambda s, x: s + x, dividing),
        "window_size_func": lambda: _read(windows(lambda key: dividing(key) + 9)),
        "window_size_func, a remainder": lambda: _read(windows(lambda key: 4 % (key - 2) + 9)),
    }
    return {label: ask(call) for label, call in calls.items()}


def growing_states(tf, ask):
    """States whose length changes from element to element."""
    data, none = tf.data.Dataset.range(4), tf.zeros([0], tf.int64)
    longer = lambda s, x: tf.concat([s, [x]], 0)

    def reduced(init, reduce, finalize):
        reducer = tf.data.experimental.Reducer(init, reduce, finalize)
        return data.apply(tf.data.experimental.group_by_reducer(lambda x: x % 2, reducer))

    datasets = {
        "group_by_reducer": lambda: reduced(lambda _: none, longer, lambda s: s),
        "group_by_reducer, summed": lambda: reduced(lambda _: none, longer, tf.reduce_sum),
        "group_by_reducer, a pair": lambda: reduced(
            lambda _: ([0], 1), lambda s, _: (tf.concat([s[0], [0]], 0), s[1]), lambda x, y: (x, y)
        ),
        "group_by_reducer, of one shape": lambda: reduced(
            lambda _: tf.zeros([1], tf.int64), lambda s, x: s + x, lambda s: s
        ),
        "scan": lambda: data.scan(none, lambda s, x: (longer(s, x), s)),
    }
    return {
        f"{label}, {what}": ask(lambda make=make, of=of: of(make()))
        for label, make in datasets.items()
        for what, of in {"elements": list, "spec": lambda d: d.element_spec}.items()
    }


def refused(tf, ask):
    """Arguments that contradict each other, or have the wrong type."""
    data, experimental = tf.data.Dataset.range(3), tf.data.experimental
    parse = experimental.parse_example_dataset({"a": tf.io.FixedLenFeature([], tf.int64, 7)})
    texts = {"a vector": [b"", b""], "a scalar": b"", "a matrix": [[b""]], "a pair": ([b""], [b""])}
    return {
        "synchronous": ask(lambda: list(data.map(lambda x: x, synchronous=True))),
        "synchronous, parallel": ask(lambda: data.map(lambda x: x, 2, synchronous=True)),
        "not synchronous, parallel": ask(lambda: list(data.map(lambda x: x, 2, synchronous=False))),
        "from_list of a number": ask(lambda: experimental.from_list(5)),
        "from_list of None": ask(lambda: experimental.from_list(None)),
        "from_list of nothing": ask(lambda: experimental.from_list([])),
        "structure of a number": ask(lambda: experimental.get_structure(3)),
        "structure of an iterator": ask(lambda: experimental.get_structure(iter(data))),
        "parse numbers": ask(lambda: data.batch(2).apply(parse)),
    } | {
        f"parse {label}": ask(lambda t=t: list(tf.data.Dataset.from_tensors(t).apply(parse)))
        for label, t in texts.items()
    }


def sparse_states(tf, ask):
    """A sparse tensor as the state of scan and reduce, alone and beside a number."""
    numbers = tf.data.Dataset.range(4)

    def start():
        return tf.SparseTensor([[0]], np.array([1]), [1])

    def plus(state, x):
        return tf.SparseTensor(state.indices, state.values + x, state.dense_shape)

    def longer(state, x):
        indices = tf.concat([state.indices, [[x + 1]]], 0)
        values = tf.concat([state.values, [x]], 0)
        return tf.SparseTensor(indices, values, state.dense_shape + 1)

    def counted(state, x):
        return {"places": plus(state["places"], x), "count": state["count"] + 1}

    def scanned(function, state):
        return list(numbers.scan(state, lambda s, x: (function(s, x), s)))

    def both():
        return {"places": start(), "count": np.int64(0)}

    def resumed():
        iterator = iter(numbers.scan(start(), lambda s, x: (plus(s, x), s)))
        next(iterator)
        checkpoint = tf.train.Checkpoint(iterator=iterator)
        path = checkpoint.write(f"{tempfile.mkdtemp()}/state")
        before = [next(iterator), next(iterator)]
        checkpoint.read(path)
        return before, [next(iterator), next(iterator)]

    return {
        "scan": scanned(plus, start()),
        "scan that adds places": scanned(longer, start()),
        "scan of a dict": scanned(counted, both()),
        "reduce": numbers.reduce(start(), plus),
        "reduce that adds places": numbers.reduce(start(), longer),
        "reduce of a dict": numbers.reduce(both(), counted),
        "reduce of nothing": numbers.take(0).reduce(start(), plus),
        "resumed": resumed(),
    }
