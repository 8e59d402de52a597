"""Several datasets as one: zip, concatenate; enumerate, which is a zip with a count; and groups of elements."""

import collections

import numpy as np
from tests.oracle.programs.datasets import _all_facts

Pair = collections.namedtuple("Pair", "y x")


def enumerate_(tf, ask):
    data = tf.data.Dataset
    facts = _all_facts(
        ask,
        {
            "from 0": lambda: data.from_tensor_slices([7, 8]).enumerate(),
            "from 5": lambda: data.from_tensor_slices([7, 8]).enumerate(5),
            "from -1": lambda: data.range(3).enumerate(start=-1),
            "of nothing": lambda: data.range(0).enumerate(),
            "of pairs": lambda: data.from_tensor_slices(([1, 2], ["a", "b"])).enumerate(),
            "of a dict": lambda: data.from_tensor_slices({"a": [1, 2]}).enumerate(),
            "of batches": lambda: data.range(5).batch(2).enumerate(),
            "of a repeat": lambda: data.range(2).repeat(2).enumerate(),
            "repeated": lambda: data.range(2).enumerate().repeat(2),
            "batched": lambda: data.range(3).enumerate().batch(2),
            "skipped": lambda: data.range(5).skip(2).enumerate(),
            "twice": lambda: data.range(2).enumerate().enumerate(3),
        },
    )
    # What TensorFlow makes of it, a zip, is nobody's business.
    return {label: fact for label, fact in facts.items() if not label.endswith("repr")} | {
        "of endless": ask(lambda: int(data.range(2).repeat().enumerate().cardinality())),
        "up to 64 bits": ask(lambda: list(data.range(2).enumerate(2**63 - 3))),
        "beyond 64 bits": ask(lambda: list(data.range(5).enumerate(2**63 - 2))),
        "beyond 64 bits, of unknown length": ask(
            lambda: list(data.range(5).filter(lambda x: x >= 0).enumerate(2**63 - 2))
        ),
        "a float": ask(lambda: data.range(2).enumerate(1.5)),
        "text": ask(lambda: data.range(2).enumerate("1")),
    }


def zip_(tf, ask):
    data = tf.data.Dataset
    a, b = (lambda: data.range(3)), (lambda: data.range(10, 12))
    slices = lambda: data.from_tensor_slices({"x": [1, 2], "y": ["a", "b"]})
    return _all_facts(
        ask,
        {
            "two": lambda: data.zip(a(), b()),
            "a tuple": lambda: data.zip((a(), b())),
            "by name": lambda: data.zip(datasets=(a(), b())),
            "one": lambda: data.zip(a()),
            "a tuple of one": lambda: data.zip((a(),)),
            "three": lambda: data.zip(a(), b(), a()),
            "a dict": lambda: data.zip({"b": a(), "a": b()}),
            "nested": lambda: data.zip((a(), (b(), slices()))),
            "a namedtuple": lambda: data.zip(Pair(a(), b())),
            "a tuple beside one": lambda: data.zip((a(), b()), a()),
            "of dicts": lambda: data.zip(slices(), slices()),
            "with nothing": lambda: data.zip(a(), data.range(0)),
            "with endless": lambda: data.zip(a(), b().repeat()),
            "with itself": lambda: data.zip(*[a()] * 2),
            "of batches": lambda: data.zip(a().batch(2), b().batch(2, drop_remainder=True)),
            "batched": lambda: data.zip(a(), b()).batch(2),
            "repeated": lambda: data.zip(a(), b()).repeat(2),
            "sharded": lambda: data.zip(a(), a()).shard(2, 1),
        },
    ) | {
        "of endless": ask(lambda: int(data.zip(a().repeat(), b().repeat()).cardinality())),
        "a list": ask(lambda: data.zip([a(), b()])),
        "a list in a tuple": ask(lambda: data.zip((a(), [b()]))),
        "a number": ask(lambda: data.zip(a(), 3)),
        "None": ask(lambda: data.zip(None)),
        "an empty tuple": ask(lambda: data.zip(())),
        "nothing": ask(data.zip),
        "nothing by name": ask(lambda: data.zip(datasets=None)),
        "an empty tuple by name": ask(lambda: data.zip(datasets=())),
        "one, and one by name": ask(lambda: data.zip(a(), datasets=b())),
        "two, and a tuple by name": ask(lambda: data.zip(a(), b(), datasets=(a(), b()))),
        "one, and nothing by name": ask(lambda: data.zip(a(), datasets=())),
        "None, and one by name": ask(lambda: data.zip(None, datasets=b())),
    }


def concatenate(tf, ask):
    data = tf.data.Dataset
    count = data.range
    same = count(2)
    rows = lambda *shape: data.from_tensor_slices(np.zeros((2, *shape), np.int32))
    return _all_facts(
        ask,
        {
            "two": lambda: count(2).concatenate(count(5, 7)),
            "of nothing": lambda: count(0).concatenate(count(2)),
            "with nothing": lambda: count(2).concatenate(count(0)),
            "with itself": lambda: same.concatenate(same),
            "three": lambda: count(1).concatenate(count(2)).concatenate(count(1)),
            "two lengths": lambda: rows(2).concatenate(rows(3)),
            "one length": lambda: rows(2).concatenate(rows(2)),
            "two ranks": lambda: rows(2).concatenate(rows(2, 2)),
            "scalars and rows": lambda: rows().concatenate(rows(2)),
            "texts": lambda: data.from_tensor_slices(["a"]).concatenate(
                data.from_tensors(["b", "c"])
            ),
            "batches": lambda: count(3).batch(2).concatenate(count(3).batch(3)),
            "dropped batches": lambda: (
                count(4)
                .batch(2, drop_remainder=True)
                .concatenate(count(3).batch(3, drop_remainder=True))
            ),
            "a batch over both": lambda: count(3).concatenate(count(3)).batch(4),
            "a batch of two lengths": lambda: rows(2).concatenate(rows(3)).batch(2),
            "a batch over two lengths": lambda: rows(2).concatenate(rows(3)).batch(3),
            "repeated": lambda: count(2).concatenate(count(1)).repeat(2),
            "skipped": lambda: count(3).concatenate(count(3)).skip(4),
            "sharded": lambda: count(3).concatenate(count(3)).shard(2, 1),
            "pairs": lambda: data.zip(count(1), count(1)).concatenate(data.zip(count(2), count(2))),
            "with endless": lambda: count(2).concatenate(count(2).repeat()).take(5),
        },
    ) | {
        "of endless": ask(lambda: int(count(2).repeat().concatenate(count(2)).cardinality())),
        "then endless": ask(lambda: int(count(2).concatenate(count(2).repeat()).cardinality())),
        "two dtypes": ask(lambda: count(2).concatenate(count(2, output_type=tf.int32))),
        "two structures": ask(lambda: count(2).concatenate(data.zip(count(2), count(2)))),
        "two keys": ask(
            lambda: data.from_tensors({"a": 1}).concatenate(data.from_tensors({"b": 1}))
        ),
        "tuple and dict": ask(
            lambda: data.from_tensors((1,)).concatenate(data.from_tensors({"b": 1}))
        ),
    }


def errors_in_the_middle(tf, ask):
    """What comes before an error is delivered, and the iterator goes on behind it."""
    count = tf.data.Dataset.range
    pairs = lambda size: count(size).batch(2)  # a short last one does not fit into a batch of these

    gap = pairs(3).concatenate(pairs(8)).batch(2)  # the first one fails

    def outcomes(dataset):
        iterator = iter(dataset)
        found = [ask(next, iterator) for _ in range(9)]
        return [getattr(one, "names", (None,))[0] or one for one in found]

    return {
        "a batch of batches": outcomes(pairs(9).batch(3)),
        "and of these": outcomes(pairs(9).batch(3).batch(1)),
        "in one Block": outcomes(pairs(11).batch(2).batch(2)),
        "repeated below": outcomes(pairs(3).repeat(3).batch(2)),
        "repeated above": outcomes(pairs(5).batch(3).repeat(3)),
        "only errors, repeated": outcomes(pairs(3).batch(2).repeat(2)),
        "zipped first": outcomes(tf.data.Dataset.zip(pairs(3).batch(2).repeat(3), count(5))),
        "zipped second": outcomes(tf.data.Dataset.zip(count(5), gap)),
        "enumerated": outcomes(gap.enumerate()),
        "concatenated": outcomes(pairs(9).batch(3).concatenate(pairs(4).batch(1))),
        "taken": outcomes(pairs(9).batch(3).repeat(2).take(2)),
        "taken without it": outcomes(pairs(9).batch(3).take(1)),
        "skipped": outcomes(pairs(9).batch(3).repeat(3).skip(1)),
        "sharded": outcomes(pairs(9).batch(3).repeat(3).shard(2, 1)),
    }


def odd_weights(tf, ask):
    data = tf.data.Dataset
    kinds = {
        "nan": [float("nan"), 0.5],
        "below zero": [-1.0, 0.5],
        "minus infinity": [float("-inf"), 0.5],
        "zero": [0.0, 0.5],
        "all nan": [float("nan")] * 2,
        "all infinite": [float("inf")] * 2,
    }

    def sampled(weights):
        return list(data.sample_from_datasets([data.range(2), data.range(5, 7)], weights, seed=1))

    return {label: ask(sampled, weights) for label, weights in kinds.items()}


def choices(tf, ask):
    data = tf.data.Dataset

    def chosen(choices, datasets=None):
        datasets = datasets or [data.range(3), data.range(10, 13)]
        return [int(x) for x in data.choose_from_datasets(datasets, choices)]

    def generated(*values):
        return data.from_generator(lambda: iter(values), tf.int64)

    return {
        "of unknown rank": ask(lambda: chosen(generated(0, 1, 1))),
        "of unknown rank, one in a list": ask(lambda: chosen(generated(0, [1], [[0]]))),
        "of unknown rank, too large": ask(lambda: chosen(generated(0, 2))),
        "vectors": ask(lambda: chosen(data.range(2).batch(1))),
        "int32": ask(lambda: chosen(data.range(2, output_type=tf.int32))),
        "in a tuple": ask(lambda: chosen(data.zip((data.range(2),)))),
        "of an iterator": ask(
            lambda: chosen(data.range(2), iter([data.range(2), data.range(5, 7)]))
        ),
        "of a tuple": ask(lambda: chosen(data.range(2), (data.range(2), data.range(5, 7)))),
    }


def sizes_of_windows(tf, ask):
    def read(way, **how):
        made = tf.data.Dataset.range(5).group_by_window(
            lambda x: x % 2, lambda _, group: group.batch(9), **how
        )
        return list(made.ignore_errors()) if way == "passing errors" else list(made)

    facts = {}
    for size in (2, True, 0, -1, 2.0, 2.5, "2"):
        for way in ("reading", "passing errors"):
            facts[f"{size!r}, {way}"] = ask(read, way, window_size=size)
        facts[f"a function that returns {size!r}"] = ask(
            read, "reading", window_size_func=lambda _, size=size: size
        )
    for size in (0, -1):
        facts[f"a function that returns {size}, passing errors"] = ask(
            read, "passing errors", window_size_func=lambda _, size=size: size
        )
    facts["a function that returns the key, passing errors"] = ask(
        read, "passing errors", window_size_func=lambda key: key
    )
    return facts
