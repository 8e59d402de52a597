"""`padded_batch`: padding values for some of the parts, and shapes that are none."""

import numpy as np


def _pairs(tf):
    rows = [([0], [0, 1]), ([0, 1], [0])]
    return tf.data.Dataset.from_generator(
        lambda: ((np.array(a, np.int32), np.array(b, np.float32)) for a, b in rows),
        output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)),
    )


def _read(dataset):
    return list(dataset.as_numpy_iterator())


def values(tf, ask):
    pairs = _pairs(tf)
    nested = tf.data.Dataset.zip((pairs, pairs))
    given = {
        "one is None": (-1, None),
        "the other is None": (None, -1.0),
        "both are None": (None, None),
        "of another dtype": (-1, -1),
    }
    answers = {
        label: ask(lambda v=v: _read(pairs.padded_batch(2, padding_values=v)))
        for label, v in given.items()
    }
    deep = {"a nest": ((-1, None), (None, 0.5)), "None for a nest": (None, (7, None))}
    return answers | {
        label: ask(lambda v=v: _read(nested.padded_batch(2, padding_values=v)))
        for label, v in deep.items()
    }


def shapes(tf, ask):
    row = tf.data.Dataset.from_tensors(np.array([1, 2]))
    given = {
        "a list of lists": [[2, 2]],
        "a matrix": np.array([[2, 2]]),
        "too short": [1],
        "too few": [],
        "a fraction": [2.5],
        "longer": [3],
    }
    return {
        label: ask(lambda s=s: _read(row.padded_batch(2, padded_shapes=s)))
        for label, s in given.items()
    }
