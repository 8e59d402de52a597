"""The tensor functions: counting, squaring, casting, shaping, reducing, comparing."""

import numpy as np


def range_(tf, ask):
    count = tf.range
    arguments = {
        "5": (5,),
        "0": (0,),
        "2, 5": (2, 5),
        "2, 9, 3": (2, 9, 3),
        "5, 2, -1": (5, 2, -1),
        "9, 2, -3": (9, 2, -3),
        "5.0": (5.0,),
        "2.5": (2.5,),
        "0, 1, 0.25": (0, 1, 0.25),
        "1, 0, -0.3": (1, 0, -0.3),
        "3, 3": (3, 3),
        "5, 2": (5, 2),
        "2, 5, -1": (2, 5, -1),
        "0, 5, 0": (0, 5, 0),
        "2**40, 2**40 + 2": (2**40, 2**40 + 2),
        "[1, 2]": ([1, 2],),
        "np.int64(3)": (np.int64(3),),
        "np.float64(3)": (np.float64(3),),
        "0, np.int64(3)": (0, np.int64(3)),
        "nan": (float("nan"),),
    }
    return {label: ask(count, *args) for label, args in arguments.items()} | {
        "as int64": ask(count, 5, dtype=tf.int64),
        "as float32": ask(count, 3, dtype=tf.float32),
        "as float64": ask(count, 1, 2, 0.5, dtype=tf.float64),
        "float as int32": ask(count, 2.5, dtype=tf.int32),
        "to an int64 tensor": ask(lambda: count(tf.constant(5, tf.int64))),
        "from an int32 tensor to a float": ask(lambda: count(tf.constant(1), 3.5)),
        "keyword limit": ask(lambda: count(0, limit=3)),
        "keyword delta": ask(lambda: count(1, 10, delta=4)),
        "of a vector tensor": ask(lambda: count(tf.constant([1, 2]))),
        "as uint8": ask(count, 3, dtype=tf.uint8),
        "as int8": ask(count, 3, dtype=tf.int8),
        "as bool": ask(count, 1, dtype=tf.bool),
        "as complex64": ask(count, 1, dtype=tf.complex64),
    }


def square(tf, ask):
    values = {
        "int": 3,
        "floats": [1.5, -2],
        "int64 array": np.arange(3),
        "complex": 1j,
        "bool": True,
        "text": "a",
        "empty": [],
        "2-d": [[1, 2], [3, 4]],
    }
    return {label: ask(tf.square, value) for label, value in values.items()} | {
        "uint8": ask(lambda: tf.square(tf.constant([2, 16], tf.uint8))),
        "int32 overflow": ask(lambda: tf.square(tf.constant(2**20))),
        "float16": ask(lambda: tf.square(tf.constant(1.5, tf.float16))),
    }


def cast(tf, ask):
    pairs = {
        "2.9 to int32": (2.9, tf.int32),
        "-2.9 to int32": (-2.9, tf.int32),
        "300 to uint8": (300, tf.uint8),
        "-1 to uint8": (-1, tf.uint8),
        "numbers to bool": ([0, 2, -1], tf.bool),
        "floats to bool": ([0.0, 0.5, float("nan")], tf.bool),
        "bools to int32": ([True, False], tf.int32),
        "bools to float32": ([True, False], tf.float32),
        "text to int32": ("1", tf.int32),
        "int to string": (1, tf.string),
        "text to string": ("a", tf.string),
        "int to float16 by name": (1, "float16"),
        "to no such dtype": (1, "nope"),
        "nan to int32": (float("nan"), tf.int32),
        "1e20 to int32": (1e20, tf.int32),
        "-1e20 to int64": (-1e20, tf.int64),
        "complex to float32": (1 + 2j, tf.float32),
        "float to complex64": (1.5, tf.complex64),
        "-1.5 to uint8": (-1.5, tf.uint8),
        "300.7 to uint8": (300.7, tf.uint8),
        "int64 array to int32": (np.array([2**40 + 5]), tf.int32),
        "int64 array to float32": (np.array([2**24 + 1]), tf.float32),
        "float64 array to float32": (np.array([0.1]), tf.float32),
        "float64 array to bfloat16": (np.array([0.1]), tf.bfloat16),
        "float to float64": (0.1, tf.float64),
        "float to float16 above": (70000.0, tf.float16),
        "to its own dtype": (7, tf.int32),
        "empty": ([], tf.int32),
        "uint32 to int32": (np.array([2**32 - 1], np.uint32), tf.int32),
    }
    return {label: ask(tf.cast, *pair) for label, pair in pairs.items()} | {
        "a tensor": ask(lambda: tf.cast(tf.constant([1.8, 2.2]), tf.int64)),
        "a text tensor": ask(lambda: tf.cast(tf.constant(["1"]), tf.float32)),
    }


def zeros_and_ones(tf, ask):
    return {
        f"{name} {label}": answer
        for name, function in {"zeros": tf.zeros, "ones": tf.ones}.items()
        for label, answer in _filled(tf, ask, function).items()
    }


def _filled(tf, ask, function):
    return {
        "int": ask(function, 3),
        "list": ask(function, [2, 2]),
        "int32": ask(function, [2], tf.int32),
        "bool": ask(function, [2], tf.bool),
        "string": ask(function, [2], tf.string),
        "scalar": ask(function, []),
        "empty": ask(function, [0, 3]),
        "negative": ask(function, [-1]),
        "tensor": ask(lambda: function(tf.constant([2]))),
        "TensorShape": ask(lambda: function(tf.TensorShape([1, 2]))),
        "tensor in a list": ask(lambda: function([tf.constant(2), 1])),
        "floats": ask(function, [2.0]),
        "None": ask(function, [None]),
        "TensorShape partly unknown": ask(lambda: function(tf.TensorShape([None, 1]))),
        "TensorShape unknown": ask(lambda: function(tf.TensorShape(None))),
        "float64 by name": ask(function, [1], "float64"),
    }


def shape(tf, ask):
    values = {
        "2-d": [[1, 2]],
        "scalar": 1,
        "text": "a",
        "texts": ["a", "b"],
        "empty": [[]],
        "array": np.zeros((2, 0, 3)),
    }
    return {label: ask(tf.shape, value) for label, value in values.items()} | {
        "int64": ask(tf.shape, [1], out_type=tf.int64),
        "float32": ask(tf.shape, [1], tf.float32),
        "tensor": ask(lambda: tf.shape(tf.constant([[1], [2]]))),
    }


def reshape(tf, ask):
    arguments = {
        "to 2 rows": ([1, 2, 3, 4], [2, -1]),
        "to too many": ([1, 2, 3], [2, 2]),
        "to a rest that does not divide": ([1, 2, 3], [2, -1]),
        "two unknown": ([1, 2, 3, 4], [-1, -1]),
        "text": (["a", "b"], [2, 1]),
        "to a scalar": ([1], []),
        "by an int": ([1, 2], -1),
        "by a tuple": ([[1, 2]], (2, 1)),
        "empty": ([], [0, 3]),
        "empty with unknown": ([], [0, -1]),
        "below -1": ([1, 2], [-2]),
        "by floats": ([1, 2], [2.0]),
        "by nested lists": ([1, 2], [[2]]),
        "flat array": (np.arange(4), [4]),
        "array": (np.arange(6).reshape(2, 3), [3, 2]),
    }
    return {label: ask(tf.reshape, *pair) for label, pair in arguments.items()} | {
        "by a tensor": ask(lambda: tf.reshape([1, 2], tf.constant([2, 1]))),
        "by a shape": ask(lambda: tf.reshape([1, 2], tf.TensorShape([2, 1]))),
        "by a shape partly unknown": ask(lambda: tf.reshape([1], tf.TensorShape([None, 1]))),
    }


def stack(tf, ask):
    arguments = {
        "numbers": ([1, 2],),
        "int and float": ([1, 2.5],),
        "rows": ([[1, 2], [3, 4]],),
        "rows along 1": ([[1, 2], [3, 4]], 1),
        "rows along -1": ([[1, 2], [3, 4]], -1),
        "along -2": ([[1, 2]], -2),
        "along 2": ([[1, 2]], 2),
        "along -3": ([[1, 2]], -3),
        "nothing": ([],),
        "ragged": ([[1], [1, 2]],),
        "texts": (["a", "b"],),
        "text and number": (["a", 1],),
        "one": ([[1, 2]],),
        "arrays": ([np.arange(2), np.arange(2)],),
        "array and list": ([np.arange(2), [5, 6]],),
        "an array of rows": (np.arange(4).reshape(2, 2), 1),
        "np.int32 and np.int64": ([np.int32(1), np.int64(2)],),
        "along text": ([1, 2], "a"),
        "along None": ([1, 2], None),
        "along 0.0": ([1, 2], 0.0),
    }
    return {label: ask(tf.stack, *args) for label, args in arguments.items()} | {
        "tensors": ask(lambda: tf.stack([tf.constant([1]), tf.constant([2])])),
        "tensors of two dtypes": ask(lambda: tf.stack([tf.constant(1), tf.constant(2.0)])),
        "tensor and int": ask(lambda: tf.stack([tf.constant(1.5), 2])),
        "text tensors": ask(lambda: tf.stack([tf.constant("a"), tf.constant("b")])),
        "keyword": ask(lambda: tf.stack(values=[[1, 2]], axis=1)),
    }


def concat(tf, ask):
    arguments = {
        "rows": ([[1], [2, 3]], 0),
        "int and float": ([[1], [2.5]], 0),
        "scalars": ([1, 2], 0),
        "along -1": ([[[1]], [[2]]], -1),
        "along 1": ([[[1], [2]], [[3], [4]]], 1),
        "nothing": ([], 0),
        "texts": ([["a"], ["b"]], 0),
        "two ranks": ([[[1]], [2]], 0),
        "two widths": ([[[1]], [[2, 3]]], 0),
        "along an axis that is not there": ([[1], [2]], 1),
        "one along an axis that is not there": ([[1]], 1),
        "arrays": ([np.arange(2), np.arange(3)], 0),
        "empty and full": ([np.zeros((0, 2), np.int32), np.ones((1, 2), np.int32)], 0),
        "text and number": ([["a"], [1]], 0),
    }
    return {label: ask(tf.concat, *args) for label, args in arguments.items()} | {
        "tensors": ask(lambda: tf.concat([tf.constant([1]), tf.constant([2])], 0)),
        "one tensor": ask(lambda: tf.concat(tf.constant([1]), 0)),
        "tensors of two dtypes": ask(lambda: tf.concat([tf.constant([1]), tf.constant([2.0])], 0)),
        "tensor and list": ask(lambda: tf.concat([tf.constant([1.5]), [2]], 0)),
        "keyword": ask(lambda: tf.concat(values=[[1], [2]], axis=0)),
    }


REDUCED = {
    "ints": ([1, 2, 4], {}),
    "negative ints": ([-1, -2, -4], {}),
    "floats": ([1.0, 2.0, 4.5], {}),
    "rows": ([[1, 2], [3, 5]], {"axis": 0}),
    "columns kept": ([[1, 2], [3, 5]], {"axis": -1, "keepdims": True}),
    "all kept": ([[1, 2], [3, 5]], {"keepdims": True}),
    "both": ([[1, 2], [3, 5]], {"axis": [0, 1]}),
    "bools": ([True, False], {}),
    "texts": (["b", "a"], {}),
    "empty floats": ([], {}),
    "empty ints": (np.array([], np.int32), {}),
    "empty rows": (np.zeros((0, 2), np.float32), {"axis": 0}),
    "empty columns": (np.zeros((2, 0), np.int64), {"axis": 1}),
    "scalar": (5, {}),
    "axis that is not there": ([[1, 2]], {"axis": 2}),
    "axis twice": ([[1, 2]], {"axis": [0, 0]}),
    "axis twice, once from behind": ([[1, 2]], {"axis": [0, -2]}),
    "no axis": ([[1, 2]], {"axis": []}),
    "float axis": ([[1, 2]], {"axis": 0.5}),
    "uint8": (np.array([250, 250], np.uint8), {}),
    "int8": (np.array([-100, -100], np.int8), {}),
    "int64": (np.array([2**40, 2**40 + 1]), {}),
    "int32 above": (np.array([2**31 - 1, 2**31 - 1], np.int32), {}),
    "float64": (np.array([0.1, 0.2]), {}),
    "float16": (np.array([60000, 60000], np.float16), {}),
    "complex": ([1j, 2 + 0j], {}),
    "nan": ([1.0, float("nan")], {}),
    "inf": ([1.0, float("inf")], {}),
}


def reduce_sum(tf, ask):
    return {label: ask(tf.reduce_sum, value, **kw) for label, (value, kw) in REDUCED.items()}


def reduce_mean(tf, ask):
    return {label: ask(tf.reduce_mean, value, **kw) for label, (value, kw) in REDUCED.items()}


def reduce_max(tf, ask):
    return {label: ask(tf.reduce_max, value, **kw) for label, (value, kw) in REDUCED.items()}


def reduce_min(tf, ask):
    return {label: ask(tf.reduce_min, value, **kw) for label, (value, kw) in REDUCED.items()}


def set_seed(tf, ask):
    seeds = {"int": 7, "None": None, "text": "7", "fraction": 7.5, "whole float": 7.0, "list": [1]}
    answers = {label: ask(tf.random.set_seed, seed) for label, seed in seeds.items()}
    tf.random.set_seed(None)
    return answers


def equal(tf, ask):
    pairs = {
        "ints": ([1, 2], [1, 3]),
        "int and float": (1, 1.0),
        "float and int": (1.0, 1),
        "texts": ("a", "a"),
        "many texts": (["a", "b"], "b"),
        "text and bytes": ("a", b"a"),
        "two lengths": ([1, 2], [1, 2, 3]),
        "text and number": ("a", 1),
        "number and text": (1, "a"),
        "nan": (float("nan"), float("nan")),
        "broadcast": ([[1], [2]], [1, 2]),
        "bools": ([True, False], [True, True]),
        "array and int": (np.arange(3), 1),
        "empty": ([], []),
        "int and bool": (1, True),
    }
    return {label: ask(tf.equal, *pair) for label, pair in pairs.items()} | {
        "tensors": ask(lambda: tf.equal(tf.constant([1, 2]), tf.constant([1, 3]))),
        "tensors of two dtypes": ask(lambda: tf.equal(tf.constant(1), tf.constant(1.0))),
        "tensor and list": ask(lambda: tf.equal(tf.constant([1.0, 2.0]), [1, 3])),
    }
