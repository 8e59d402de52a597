"""`py_function` and `numpy_function`: no inputs, no results, as decorators."""

import numpy as np


def no_inputs(tf, ask):
    return {
        "py_function": ask(tf.py_function, lambda: 3, [], tf.int32),
        "numpy_function": ask(tf.numpy_function, lambda: np.int32(3), [], tf.int32),
        "py_function, inputs missing": ask(lambda: tf.py_function(lambda: 3, Tout=tf.int32)),
        "numpy_function, inputs missing": ask(lambda: tf.numpy_function(lambda: 3, Tout=tf.int32)),
        "a number for a function": ask(tf.py_function, 3, [], tf.int32),
    }


def no_results(tf, ask):
    def unchanged(x):
        tf.py_function(lambda v: None, [x], [])
        return x

    return {
        "none declared": ask(tf.py_function, lambda: None, [], []),
        "one declared": ask(tf.py_function, lambda: None, [], tf.int32),
        "one of a list declared": ask(tf.py_function, lambda: None, [], [tf.int32]),
        "Tout missing": ask(tf.py_function, lambda: None, []),
        "in a map": ask(lambda: list(tf.data.Dataset.range(3).map(unchanged).as_numpy_iterator())),
    }


def decorators(tf, ask):
    @tf.py_function(Tout=tf.float32)
    def scaled(x, y):
        return x * 2 + y

    @tf.numpy_function(Tout=[tf.float32, tf.int64])
    def several(x):
        return x * 2, np.int64(1)

    @tf.numpy_function(Tout=tf.int64)
    def doubled(x):
        return x * 2

    counts = tf.data.Dataset.range(3)
    return {
        "py_function": ask(scaled, 1.0, 2.0),
        "numpy_function": ask(several, np.float32(1)),
        "in a map": ask(lambda: list(counts.map(doubled).as_numpy_iterator())),
        "its dtype in a map": counts.map(doubled).element_spec.dtype,
        "with inputs": ask(lambda: tf.py_function(None, [1.0], tf.float32)),
        "without Tout": ask(tf.py_function),
    }


_RETURNED = {
    "a float": 1.5,
    "an int": 3,
    "a bool": True,
    "float64": np.array([1.5, -2.5]),
    "a float64": np.float64(1.5),
    "float32": np.array([1.5], np.float32),
    "float16": np.array([1.5], np.float16),
    "int64": np.array([1, 2]),
    "an int32": np.int32(7),
    "uint8": np.array([44], np.uint8),
    "bool": np.array([True, False]),
    "a float64 that is too large": np.float64(1e300),
    "text": "a",
    "an array of text": np.array(["a"]),
    "None": None,
}


def results_of_py_function(tf, ask):
    """What NumPy's arrays become: they are cast, whatever they hold."""
    return {
        f"{label} as {name}": ask(tf.py_function, lambda value=value: value, [], tf.as_dtype(name))
        for label, value in _RETURNED.items()
        for name in ("float32", "float64", "int32", "int64", "string")
        if not (label.endswith("large") and name.startswith("int"))  # it depends on the processor
    }


def results_of_numpy_function(tf, ask):
    """NumPy's arrays keep their dtype, and must have the one that is declared."""
    once = tf.data.Dataset.range(1)
    return {
        f"{label} as {name}": ask(
            lambda value=value, name=name: list(
                once.map(lambda x: tf.numpy_function(lambda _: value, [x], tf.as_dtype(name)))
            )
        )
        for label, value in _RETURNED.items()
        for name in ("float32", "float64", "int32", "int64", "string")
        if isinstance(value, (np.ndarray, np.generic))
    }
