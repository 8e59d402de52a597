"""Functions of datasets that return what is no tensor."""

import numpy as np


class _Thing:
    pass


RESULTS = {
    "a class": int,
    "a function": print,
    "a module": np,
    "a set": {1, 2},
    "an object": _Thing(),
}


def maps(tf, ask):
    counts = tf.data.Dataset.range(2)
    return {label: ask(counts.map, lambda _, r=r: r) for label, r in RESULTS.items()} | {
        f"{label} in a dict": ask(counts.map, lambda x, r=r: {"x": x, "r": r})
        for label, r in RESULTS.items()
    }


def reductions(tf, ask):
    counts = tf.data.Dataset.range(2)
    return {
        label: ask(counts.reduce, np.int64(0), lambda _, __, r=r: r) for label, r in RESULTS.items()
    }


def predicates(tf, ask):
    counts = tf.data.Dataset.range(2)
    answers = {"a dataset": counts, "an optional": tf.experimental.Optional.from_value(True)}
    return {
        label: ask(lambda answer=answer: list(counts.filter(lambda _: answer)))
        for label, answer in answers.items()
    }
