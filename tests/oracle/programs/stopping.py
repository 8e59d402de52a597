"""What becomes of a StopIteration in a function that a dataset calls."""

import numpy as np


def functions(tf, ask):
    numbers = tf.data.Dataset.range(5)

    def checked(x):
        return tf.numpy_function(_stops_at_two, [x], tf.int64)

    def answered(x):
        return tf.numpy_function(lambda x: np.bool_(_stops_at_two(x) >= 0), [x], tf.bool)

    def one_of(x):
        return tf.data.Dataset.from_tensors(checked(x))

    made = {
        "map": numbers.map(checked),
        "map in threads": numbers.map(checked, num_parallel_calls=2),
        "py_function": numbers.map(lambda x: tf.py_function(_stops_at_two, [x], tf.int64)),
        "filter": numbers.filter(answered),
        "take_while": numbers.take_while(answered),
        "flat_map": numbers.flat_map(one_of),
        "interleave": numbers.interleave(one_of, cycle_length=1),
        "scan": numbers.scan(np.int64(0), lambda s, x: (s, checked(x))),
        "a key": numbers.group_by_window(checked, lambda key, group: group, window_size=1),
        "prefetch": numbers.map(checked).prefetch(2),
        "ignore_errors": numbers.map(checked).ignore_errors(),
    }
    told = {label: _read_on(ask, dataset) for label, dataset in made.items()}
    return {
        **told,
        "reduce": ask(lambda: numbers.reduce(np.int64(0), lambda s, x: s + checked(x))),
    }


def generators(tf, ask):
    def generated(source):
        spec = tf.TensorSpec([], tf.int64)
        return _read_on(ask, tf.data.Dataset.from_generator(source, output_signature=spec))

    return {
        "an iterator that ends": generated(_CountsToTwo),
        "a generator that returns": generated(lambda: iter([1, 2])),
        "a function that cannot begin": generated(lambda: next(iter(()))),
        "an iterable that cannot begin": generated(_StopsAtIter),
    }


def _stops_at_two(x):
    if int(x) == 2:
        raise StopIteration
    return np.int64(x)


class _CountsToTwo:
    def __init__(self):
        self._at = 0

    def __iter__(self):
        return self

    def __next__(self):
        self._at += 1
        if self._at > 2:
            raise StopIteration
        return self._at


class _StopsAtIter:
    def __iter__(self):
        return next(iter(()))


def _read_on(ask, dataset):
    """Return the elements up to the first error, that error, and whether the rest comes."""
    iterator, before = iter(dataset), []
    while True:
        found = ask(lambda: next(iterator, None))
        if found is None:
            return [before, "ended"]
        if not hasattr(found, "numpy"):
            return [before, found, _rest(iterator)]
        before.append(int(found))


def _rest(iterator):
    try:
        return [int(x) for x in iterator]
    except Exception:  # noqa: BLE001 - a source that never begins fails again
        return "fails again"
