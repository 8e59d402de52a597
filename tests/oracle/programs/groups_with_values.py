"""Functions of `group_by_window` that read their group, such as `get_single_element`."""

# pyright: basic

import numpy as np


def _grouped(tf, function, size, **others):
    dataset = tf.data.Dataset.range(6)
    return dataset.group_by_window(lambda x: x % 2, function, size, **others)


def single_elements(tf, ask):
    make = tf.data.Dataset

    def whole(_, group):
        return make.from_tensors(group.batch(10).get_single_element())

    def keyed(key, group):
        return make.from_tensors({"key": key, "values": group.batch(10).get_single_element()})

    functions = {
        "whole": whole,
        "keyed": keyed,
        "slices": lambda _, group: make.from_tensor_slices(group.batch(9).get_single_element()),
        "first": lambda _, group: make.from_tensors(next(iter(group))),
        "sum": lambda _, group: make.from_tensors(group.reduce(np.int64(0), lambda s, x: s + x)),
        "count": lambda _, group: make.from_tensors(group.cardinality()),
    }
    answers = {}
    for label, function in functions.items():
        for size in (1, 2, 4):
            dataset = _grouped(tf, function, size)
            answers[f"{label}, {size}"] = (dataset.element_spec, list(dataset))
    sized = _grouped(tf, whole, None, window_size_func=lambda key: key + 2)
    return {**answers, "sizes": (sized.element_spec, list(sized))}


def text_and_padding(tf, ask):
    make = tf.data.Dataset
    words = make.from_tensor_slices(["a", "bb", "a", "c"])
    joined = words.group_by_window(
        lambda word: tf.cast(tf.strings.length(word), tf.int64),
        lambda _, group: make.from_tensors(
            tf.strings.reduce_join(group.batch(9).get_single_element())
        ),
        3,
    )
    rows = make.range(1, 7).map(tf.range)
    padded = rows.group_by_window(
        lambda row: row[0],
        lambda _, group: make.from_tensors(group.padded_batch(9).get_single_element()),
        3,
    )
    return {
        "text": (joined.element_spec, list(joined)),
        "padded": (padded.element_spec, list(padded)),
    }
