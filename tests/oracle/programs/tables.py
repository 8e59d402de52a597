"""Tables and columns of pandas as values."""

import numpy as np
import pandas as pd

FRAME = pd.DataFrame({"a": [1, 2], "b": [1.5, 2.5], "t": ["x", "é"]})
COLUMNS = {
    "whole numbers": FRAME["a"],
    "floats": FRAME["b"],
    "text": FRAME["t"],
    "text as objects": FRAME["t"].astype(object),
    "text with a gap": pd.Series(["a", None]),
    "categories": pd.Series(pd.Categorical(["u", "v", "u"])),
    "truth": pd.Series([True, False]),
    "whole numbers that may lack": pd.Series([1, 2], dtype="Int64"),
    "whole numbers of which one lacks": pd.Series([1, None], dtype="Int64"),
    "times": pd.Series(pd.to_datetime(["2020-01-01"])),
    "an index": FRAME.index,
}


def columns(tf, ask):
    return {label: ask(lambda c=c: _read(tf, c)) for label, c in COLUMNS.items()} | {
        f"{label}, constant": ask(tf.constant, c) for label, c in COLUMNS.items()
    }


def frames(tf, ask):
    numbers = FRAME[["a", "b"]]
    return {
        "a dict of columns": ask(lambda: _read(tf, dict(FRAME))),
        "columns and labels": ask(lambda: _read(tf, (dict(numbers), FRAME["t"]))),
        "numbers": ask(lambda: _read(tf, numbers)),
        "one column": ask(lambda: _read(tf, FRAME[["a"]])),
        "numbers and text": ask(lambda: _read(tf, FRAME)),
        "its values": ask(lambda: _read(tf, numbers.values)),
        "constant": ask(tf.constant, numbers),
        "rows of a generator": ask(lambda: _rows(tf, lambda: numbers.itertuples(index=False))),
    }


def _read(tf, value):
    dataset = tf.data.Dataset.from_tensor_slices(value)
    return [dataset.element_spec, list(dataset.as_numpy_iterator())]


def _rows(tf, generator):
    spec = (tf.TensorSpec([], np.int64), tf.TensorSpec([], np.float64))
    dataset = tf.data.Dataset.from_generator(generator, output_signature=spec)
    return list(dataset.as_numpy_iterator())
