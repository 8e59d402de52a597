"""Which elements come: take, skip, shard, and what a shuffle promises whatever its order is."""

import numpy as np
from tests.oracle.programs.datasets import _all_facts


def take(tf, ask):
    count = tf.data.Dataset.range
    return _all_facts(
        ask,
        {
            "2": lambda: count(5).take(2),
            "0": lambda: count(5).take(0),
            "-1": lambda: count(3).take(-1),
            "more than there are": lambda: count(3).take(10),
            "of nothing": lambda: count(0).take(2),
            "of endless": lambda: count(2).repeat().take(5),
            "of a take": lambda: count(9).take(5).take(3),
            "of batches": lambda: count(5).batch(2).take(2),
            "of a batch of two shapes": lambda: count(5).batch(2).batch(3).take(1),
            "np.int64": lambda: count(5).take(np.int64(2)),
            "named": lambda: count(3).take(2, name="two"),
            "keyword": lambda: count(3).take(count=2),
        },
    ) | {
        "all of endless": ask(lambda: int(count(2).repeat().take(-1).cardinality())),
        "none of endless": ask(lambda: int(count(2).repeat().take(0).cardinality())),
        "-5": ask(lambda: list(count(3).take(-5).as_numpy_iterator())),
        "a float": ask(lambda: count(5).take(2.5)),
        "text": ask(lambda: count(5).take("2")),
    }


def skip(tf, ask):
    count = tf.data.Dataset.range
    return _all_facts(
        ask,
        {
            "2": lambda: count(5).skip(2),
            "0": lambda: count(3).skip(0),
            "-1": lambda: count(3).skip(-1),
            "-5": lambda: count(3).skip(-5),
            "more than there are": lambda: count(3).skip(10),
            "as many as there are": lambda: count(3).skip(3),
            "of nothing": lambda: count(0).skip(2),
            "then take": lambda: count(9).skip(2).take(3),
            "of a take": lambda: count(9).take(5).skip(3),
            "of endless, then take": lambda: count(3).repeat().skip(4).take(4),
            "repeated": lambda: count(3).skip(1).repeat(2),
            "of batches": lambda: count(5).batch(2).skip(1),
            "named": lambda: count(3).skip(2, name="two"),
        },
    ) | {
        "of endless": ask(lambda: int(count(2).repeat().skip(3).cardinality())),
        "a float": ask(lambda: count(5).skip(2.5)),
        "text": ask(lambda: count(5).skip("2")),
    }


def shard(tf, ask):
    count = tf.data.Dataset.range
    return _all_facts(
        ask,
        {f"{index} of 3": lambda index=index: count(8).shard(3, index) for index in range(3)}
        | {
            "the only one": lambda: count(3).shard(1, 0),
            "past the end": lambda: count(2).shard(5, 3),
            "of nothing": lambda: count(0).shard(2, 1),
            "of a shard": lambda: count(20).shard(3, 1).shard(2, 1),
            "of batches": lambda: count(7).batch(2).shard(2, 1),
            "of a repeat": lambda: count(3).repeat(3).shard(2, 1),
            "repeated": lambda: count(3).shard(2, 0).repeat(2),
            "of endless, then take": lambda: count(3).repeat().shard(2, 1).take(4),
            "keywords": lambda: count(4).shard(index=1, num_shards=2),
            "np.int64": lambda: count(4).shard(np.int64(2), np.int64(1)),
        },
    ) | {
        "of endless": ask(lambda: int(count(3).repeat().shard(2, 1).cardinality())),
        "no shards": ask(lambda: list(count(3).shard(0, 0))),
        "index as large as the shards": ask(lambda: list(count(3).shard(2, 2))),
        "index -1": ask(lambda: list(count(3).shard(2, -1))),
        "a float": ask(lambda: count(5).shard(2.5, 0)),
        "text": ask(lambda: count(5).shard("2", 0)),
    }


def _numbers(dataset):
    return [int(x) for x in dataset]


def _stays_in_bound(order, size):
    return all(place >= number - (size - 1) for place, number in enumerate(order))


def shuffle(tf, ask):
    count = tf.data.Dataset.range
    facts = {}
    for size in (1, 2, 3, 10, 20, 100):
        mixed = count(20).shuffle(size, seed=5)
        orders = [_numbers(mixed) for _ in range(20)]
        facts |= {
            f"{size}: element_spec": mixed.element_spec,
            f"{size}: cardinality": int(mixed.cardinality()),
            f"{size}: every element once": all(sorted(o) == list(range(20)) for o in orders),
            f"{size}: within the bound": all(_stays_in_bound(order, size) for order in orders),
            f"{size}: passes differ": len(set(map(tuple, orders))) > 1,
            f"{size}: in order": orders[0] == list(range(20)),
        }
    return facts | {
        "of nothing": ask(lambda: list(count(0).shuffle(3))),
        "of one": ask(lambda: list(count(1).shuffle(3))),
        "of endless": ask(lambda: int(count(3).repeat().shuffle(3).cardinality())),
        "0": ask(lambda: list(count(3).shuffle(0))),
        "-1": ask(lambda: sorted(_numbers(count(3).shuffle(-1)))),
        "-2": ask(lambda: sorted(_numbers(count(3).shuffle(-2)))),
        "-3": ask(lambda: list(count(3).shuffle(-3))),
        "its own cardinality": ask(
            lambda: sorted(_numbers(count(3).shuffle(count(3).cardinality())))
        ),
        "the cardinality of endless": ask(
            lambda: list(count(3).repeat().shuffle(count(3).repeat().cardinality()).take(2))
        ),
        "a float": ask(lambda: count(3).shuffle(2.5)),
        "text": ask(lambda: count(3).shuffle("2")),
        "None": ask(lambda: count(3).shuffle(None)),
        "seed as a float": ask(lambda: count(3).shuffle(2, seed=1.5)),
        "repr": repr(count(3).shuffle(2)).partition(" ")[0],
        "named": ask(lambda: int(count(3).shuffle(2, name="mixed").cardinality())),
    }


def shuffle_passes(tf, ask):
    count = tf.data.Dataset.range
    mixed = lambda **options: count(30).shuffle(30, **options)

    def rounds(dataset):
        numbers = _numbers(dataset)
        return [numbers[start : start + 30] for start in range(0, len(numbers), 30)]

    fixed, fresh = mixed(seed=1, reshuffle_each_iteration=False), mixed(seed=1)
    twice = mixed(seed=3)
    pair = mixed(seed=4)
    fixed_pair = mixed(seed=4, reshuffle_each_iteration=False)
    first, second = rounds(mixed(seed=2).repeat(2))
    fixed_first, fixed_second = rounds(mixed(seed=2, reshuffle_each_iteration=False).repeat(2))
    inner = rounds(mixed(seed=2).repeat(2).repeat(2))
    zipped = rounds(x for x, _ in tf.data.Dataset.zip(mixed(seed=6), count(30)).repeat(2))
    chained = rounds(pair.concatenate(pair))
    tf.random.set_seed(9)
    global_one = _numbers(mixed())
    tf.random.set_seed(9)
    global_two = _numbers(mixed())
    both = (tf.random.set_seed(9), _numbers(mixed(seed=1)))[1]
    other = (tf.random.set_seed(8), _numbers(mixed(seed=1)))[1]
    return {
        "a fixed order stays": _numbers(fixed) == _numbers(fixed),
        "a fresh order does not": _numbers(fresh) == _numbers(fresh),
        "None is fresh": _numbers(t := mixed(seed=1, reshuffle_each_iteration=None)) == _numbers(t),
        "one seed, two datasets": _numbers(mixed(seed=1)) == _numbers(mixed(seed=1)),
        "two seeds": _numbers(mixed(seed=1)) == _numbers(mixed(seed=2)),
        "first pass, then second, of two datasets": [_numbers(twice) for _ in range(2)]
        == [_numbers(again) for again in [mixed(seed=3)] * 2],
        "rounds differ": first == second,
        "fixed rounds differ": fixed_first == fixed_second,
        "rounds of rounds differ": len(set(map(tuple, inner))),
        "rounds of a zip differ": zipped[0] == zipped[1],
        "zipped with itself": all(int(a) == int(b) for a, b in tf.data.Dataset.zip(pair, pair)),
        "zipped with itself, fixed": all(
            int(a) == int(b) for a, b in tf.data.Dataset.zip(fixed_pair, fixed_pair)
        ),
        "global seed": global_one == global_two,
        "global and own seed": both == other,
        "concatenated with itself": chained[0] == chained[1],
    }
