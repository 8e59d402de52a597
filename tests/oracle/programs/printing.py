"""tf.print, written to a file."""

import tempfile
from pathlib import Path

import numpy as np


def _printed(tf, *values, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        tf.print(*values, output_stream=f"file://{path}", **options)
        return path.read_text()


def values(tf, ask):
    arguments = {
        "nothing": (),
        "int": (3,),
        "float": (2.5,),
        "bool": (True,),
        "text": ("a",),
        "bytes": (b"a",),
        "unicode": ("ä€",),
        "None": (None,),
        "several": (1, "a", 2.5),
        "list": ([1, 2],),
        "tuple": ((1, 2),),
        "dict": ({"b": 1, "a": 2},),
        "nested": ({"a": [1, (2,)]},),
        "list of texts": (["a", "b"],),
        "array": (np.arange(3),),
        "2-d array": (np.arange(4).reshape(2, 2),),
        "float array": (np.array([0.5, 1.0, 1e-7]),),
        "long array": (np.arange(20),),
        "empty list": ([],),
        "empty array": (np.array([]),),
    }
    return {label: ask(_printed, tf, *args) for label, args in arguments.items()}


def tensors(tf, ask):
    constants = {
        "int": 3,
        "float": 2.5,
        "whole float": 2.0,
        "third": 1 / 3,
        "large float": 1e20,
        "small float": 1e-10,
        "bool": True,
        "text": "a",
        "ints": [1, 2, 3],
        "floats": [1.0, 2.5, 1e-7],
        "bools": [True, False],
        "texts": ["a", "b c"],
        "2-d": [[1, 2], [3, 4]],
        "3-d": [[[1, 2]], [[3, 4]]],
        "empty": [],
        "seven": list(range(7)),
        "long": list(range(20)),
        "long 2-d": [list(range(10))] * 10,
        "nan": [float("nan"), float("inf"), -float("inf")],
        "negative zero": -0.0,
        "unicode": "ä",
        "quotes": "it's",
    }
    return {
        label: ask(lambda value=value: _printed(tf, tf.constant(value)))
        for label, value in constants.items()
    } | {
        "in a dict": ask(lambda: _printed(tf, {"a": tf.constant([1, 2])})),
        "in a list": ask(lambda: _printed(tf, [tf.constant(1), tf.constant("b")])),
        "text beside text": ask(lambda: _printed(tf, "x", tf.constant('a\n"b'))),
        "text beside a number": ask(lambda: _printed(tf, tf.constant("a\nb"), 1)),
        "text beside nothing": ask(lambda: _printed(tf, tf.constant("a\nb"), "")),
        "text beside an empty list": ask(lambda: _printed(tf, tf.constant("a\nb"), [])),
        "two texts": ask(lambda: _printed(tf, tf.constant("a"), tf.constant("b"), sep="")),
        "text alone": ask(lambda: _printed(tf, tf.constant("a\nb"), end="!")),
        "beside text": ask(lambda: _printed(tf, "x:", tf.constant([1.5]), "y")),
        "float16": ask(lambda: _printed(tf, tf.constant(0.1, tf.float16))),
        "float64": ask(lambda: _printed(tf, tf.constant(0.1, tf.float64))),
        "bfloat16": ask(lambda: _printed(tf, tf.constant(0.1, tf.bfloat16))),
        "uint8": ask(lambda: _printed(tf, tf.constant([255], tf.uint8))),
        "complex": ask(lambda: _printed(tf, tf.constant(1 + 2j))),
        "shape": ask(lambda: _printed(tf, tf.TensorShape([1, None]))),
        "spec": ask(lambda: _printed(tf, tf.TensorSpec([1]))),
    }


def options(tf, ask):
    long = tf.range(20)
    return {
        "end": ask(_printed, tf, 1, 2, end="!"),
        "sep": ask(_printed, tf, 1, 2, 3, sep=", "),
        "summarize 2": ask(_printed, tf, long, summarize=2),
        "summarize all": ask(_printed, tf, long, summarize=-1),
        "summarize 1 of 2-d": ask(_printed, tf, tf.reshape(long, [4, 5]), summarize=1),
        "summarize as long": ask(_printed, tf, tf.range(6), summarize=3),
        "unknown option": ask(_printed, tf, 1, color="red"),
    }


def two_prints_append(tf, ask):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        for value in (1, "two"):
            ask(tf.print, value, output_stream=f"file://{path}")
        return {"text": ask(path.read_text)}
