"""None as a part of an element: what users' functions see."""

import numpy as np


def functions(tf, ask):
    pairs = tf.data.Dataset.from_tensor_slices((np.arange(3), None))
    texts = tf.data.Dataset.from_tensor_slices((["a", "b"], None))
    nested = tf.data.Dataset.from_tensors({"a": {"b": None, "c": 1}, "d": (None, "text")})
    ten = np.int64(10)
    datasets = {
        "map": lambda: pairs.map(lambda x, y: (x, y is None)),
        "map that branches": lambda: pairs.map(lambda x, y: x + 1 if y is None else x - 1),
        "map that hands it on": lambda: pairs.map(lambda x, y: {"y": y, "x": x}),
        "map that returns None": lambda: pairs.map(lambda x, y: (x, None)),
        "map in threads": lambda: pairs.map(lambda x, y: (x, y is None), num_parallel_calls=2),
        "map of a batch": lambda: pairs.batch(2).map(lambda x, y: (x, y is None)),
        "map of text": lambda: texts.map(lambda x, y: (x, y is None)),
        "map of numbered elements": lambda: pairs.enumerate().map(lambda i, xy: xy[1] is None),
        "map of a nest": lambda: nested.map(lambda e: (e["a"]["b"] is None, e["d"][0] is None)),
        "map that hands on a nest": lambda: nested.map(lambda e: (e["a"], e["d"])),
        "filter": lambda: pairs.filter(lambda x, y: y is None),
        "filter by its absence": lambda: pairs.filter(lambda x, y: y is not None),
        "filter of text": lambda: texts.filter(lambda x, y: y is None),
        "take_while": lambda: pairs.take_while(lambda x, y: y is None),
        "flat_map": lambda: pairs.flat_map(
            lambda x, y: tf.data.Dataset.range(2 if y is None else 5)
        ),
        "interleave": lambda: pairs.interleave(
            lambda x, y: tf.data.Dataset.range(2 if y is None else 5), cycle_length=1
        ),
        "scan": lambda: pairs.scan(
            np.int64(0), lambda s, e: (s + 1, s if e[1] is None else s + 100)
        ),
        "group_by_window": lambda: pairs.group_by_window(
            lambda x, y: np.int64(0) if y is None else x, lambda _, group: group.batch(3), 3
        ),
        "numpy_function": lambda: pairs.map(
            lambda x, y: tf.numpy_function(lambda a: a + 1 if y is None else a, [x], tf.int64)
        ),
    }
    answers = {label: ask(_elements, make) for label, make in datasets.items()}
    answers["reduce"] = ask(pairs.reduce, ten, lambda s, e: s + 1 if e[1] is None else s - 1)
    answers["spec of a map that hands it on"] = ask(
        lambda: pairs.map(lambda x, y: {"y": y, "x": x}).element_spec
    )
    return answers


def _elements(make):
    return list(make())
