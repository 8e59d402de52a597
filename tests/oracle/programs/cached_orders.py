"""Random orders below caches, and in datasets that functions make or are given: which of them are the same."""

import itertools

import numpy as np


def _numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset]


def _same(numbers, size):
    """Return which pieces of this size are the same as the first, and whether all hold the same rows."""
    pieces = [numbers[at : at + size] for at in range(0, len(numbers), size)]
    rows = [sorted(map(str, piece)) for piece in pieces]
    return [piece == pieces[0] for piece in pieces], all(row == rows[0] for row in rows)


def orders(tf, ask):
    dataset = tf.data.Dataset
    rows = 40

    def mixed(**how):
        return dataset.range(rows).shuffle(rows, seed=3, **how)

    def passes(made):
        return [first == second for first, second in [(_numbers(made), _numbers(made))]]

    def rounds(made):
        return _same(_numbers(made.repeat(3)), rows)

    def behind_itself():
        cached = mixed().cache()
        return _same(_numbers(cached.concatenate(cached)), rows)

    def shuffle_behind_itself(**how):
        made = mixed(**how)
        return _same(_numbers(made.concatenate(made)), rows)

    def beside_itself():
        cached = mixed().cache()
        pairs = [
            [x == y for x, y in _numbers(dataset.zip((cached, cached)).map(_pair(tf)))]
            for _ in range(2)
        ]
        return [all(equal) for equal in pairs]

    def beside_rows_that_are_not_counted(size):
        counted = dataset.range(size).filter(lambda _: True)
        made = dataset.zip((counted, mixed().filter(lambda _: True).cache()))
        return passes(made.map(_pair(tf)))

    def given(made):
        return _same(_numbers(dataset.range(3).flat_map(lambda _: made)), rows)

    def windows():
        cached = mixed().cache().window(3, shift=2, drop_remainder=True)
        made = cached.flat_map(lambda window: window.batch(3))
        first, second = _numbers(made), _numbers(made)
        return first == second, [a[2] == b[0] for a, b in itertools.pairwise(first)]

    return {
        "passes over a cache": ask(lambda: passes(mixed().cache())),
        "passes over a shuffle": ask(lambda: passes(mixed())),
        "rounds of a cache": ask(lambda: rounds(mixed().cache())),
        "rounds of a shuffle": ask(lambda: rounds(mixed())),
        "rounds of one order": ask(lambda: rounds(mixed(reshuffle_each_iteration=False))),
        "rounds below a cache": ask(lambda: _same(_numbers(mixed().repeat(3).cache()), rows)),
        "a cache of a cached round": ask(
            lambda: _same(_numbers(mixed().cache().repeat(3).cache()), rows)
        ),
        "a cache behind itself": ask(behind_itself),
        "a shuffle behind itself": ask(shuffle_behind_itself),
        "one order behind itself": ask(shuffle_behind_itself, reshuffle_each_iteration=False),
        "a cache beside itself": ask(beside_itself),
        **{
            f"a cache beside {size} rows that are not counted": ask(
                beside_rows_that_are_not_counted, size
            )
            for size in (rows - 1, rows, rows + 1)
        },
        "a function that is given a cache": ask(lambda: given(mixed().cache())),
        "a function that is given a shuffle": ask(lambda: given(mixed())),
        "overlapping windows": ask(windows),
    }


def _pair(tf):
    return lambda x, y: tf.stack([x, y])


def long_chains(tf, ask):
    dataset = tf.data.Dataset

    def doubled(times):
        made = dataset.range(1)
        for _ in range(times):
            made = made.concatenate(made)
        return int(made.cardinality()), _numbers(made.take(3))

    def chained(count):
        made = dataset.range(0)
        for number in range(count):
            made = made.concatenate(dataset.range(number, number + 1))
        return _numbers(made) == list(range(count))

    return {
        "n calls of concatenate": ask(doubled, 10),
        "a chain": ask(chained, 200),
    }
