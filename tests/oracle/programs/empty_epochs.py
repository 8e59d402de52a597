"""Repetitions of datasets of which some epochs have no elements."""

import itertools

import numpy as np

_ROWS = (0, 0, 1, 0, 2)  # in the epochs of a generator, in turn; none in all that follow


class _Uneven:
    """A generator that yields another number of rows each time it is called."""

    def __init__(self, rows):
        self.rows = rows
        self.calls = 0

    def __call__(self):
        count = self.rows[self.calls] if self.calls < len(self.rows) else 0
        self.calls += 1
        for row in range(count):
            yield 10 * self.calls + row


def _read(tf, ask, make, rows=_ROWS):
    """Return the elements, the cardinality, and how often the generator was called."""

    def found():
        generator = _Uneven(rows)
        dataset = make(
            tf.data.Dataset.from_generator(generator, output_signature=tf.TensorSpec([], tf.int64))
        )
        elements = [np.asarray(x) for x in itertools.islice(dataset.as_numpy_iterator(), 50)]
        return elements, int(dataset.cardinality()), generator.calls

    return ask(found)


def counted(tf, ask):
    data = tf.data.Dataset
    return {
        "five": _read(tf, ask, lambda d: d.repeat(5)),
        "more than there are": _read(tf, ask, lambda d: d.repeat(7)),
        "fewer": _read(tf, ask, lambda d: d.repeat(3)),
        "none": _read(tf, ask, lambda d: d.repeat(0)),
        "all empty": _read(tf, ask, lambda d: d.repeat(4), ()),
        "twice": _read(tf, ask, lambda d: d.repeat(5).repeat(2), (0, 0, 1, 0, 2, 0, 0, 3)),
        "of none": _read(tf, ask, lambda d: d.repeat(0).repeat(3)),
        "of what has no count": _read(tf, ask, lambda d: d.repeat().repeat(3), (1, 0, 1, 0, 2)),
        "of a range of nothing": ask(lambda: list(data.range(0).repeat(5).as_numpy_iterator())),
        "in a flat_map": _read(tf, ask, lambda d: data.range(2).flat_map(lambda _: d.repeat(3))),
        "of a flat_map": _read(tf, ask, lambda d: data.range(2).flat_map(lambda _: d).repeat(3)),
        "in an interleave": _read(
            tf, ask, lambda d: data.range(2).interleave(lambda _: d.repeat(3), cycle_length=2)
        ),
    }


def without_a_count(tf, ask):
    return {
        "the first is empty": _read(tf, ask, lambda d: d.repeat()),
        "the third is empty": _read(tf, ask, lambda d: d.repeat(), (1, 2, 0, 3)),
        "negative": _read(tf, ask, lambda d: d.repeat(-1), (1, 2, 0, 3)),
        "of two": _read(tf, ask, lambda d: d.repeat(2).repeat(), (0, 1, 1, 0, 2, 0, 0, 3)),
        "of all": _read(tf, ask, lambda d: d.repeat().repeat(), (1, 0, 1, 0, 0, 2)),
    }


def over_other_steps(tf, ask):
    data = tf.data.Dataset
    promise = tf.data.experimental.assert_cardinality
    pairs = lambda d: data.zip(d, data.range(3)).map(lambda x, y: 100 * x + y)
    group = lambda _, rows: rows.batch(2)
    steps = {
        "batch": lambda d: d.batch(2),
        "only full batches": lambda d: d.batch(2, drop_remainder=True),
        "skip": lambda d: d.skip(1),
        "shard": lambda d: d.shard(2, 1),
        "take_while": lambda d: d.take_while(lambda x: x < 51),
        "map": lambda d: d.map(lambda x: x + 1),
        "filter": lambda d: d.filter(lambda x: x % 2 == 0),
        "cache": lambda d: d.cache(),
        "prefetch": lambda d: d.prefetch(2),
        "shuffle": lambda d: d.shuffle(1),
        "enumerate": lambda d: d.enumerate().map(lambda n, x: n + x),
        "zip": pairs,
        "concatenate": lambda d: d.concatenate(d),
        "window": lambda d: d.window(2).flat_map(lambda rows: rows),
        "unbatch": lambda d: d.batch(2).unbatch(),
        "group_by_window": lambda d: d.group_by_window(lambda x: x % 2, group, window_size=2),
        "unique": lambda d: d.unique(),
        "scan": lambda d: d.scan(np.int64(0), lambda total, x: (total + x, total + x)),
        "choose": lambda d: data.choose_from_datasets([d], data.range(1)),
        "options": lambda d: d.with_options(tf.data.Options()),
        "a promise of nothing": lambda d: d.apply(promise(0)),
    }
    return {
        label: _read(tf, ask, lambda d, step=step: step(d).repeat(5))
        for label, step in steps.items()
    } | {
        "cache above": _read(tf, ask, lambda d: d.repeat(5).cache().repeat(2)),
    }
