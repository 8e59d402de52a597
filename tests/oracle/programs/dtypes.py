"""The dtypes and their names."""

import numpy as np

NAMES = [
    "bfloat16", "bool", "complex128", "complex64", "double", "float16", "float32", "float64",
    "half", "int16", "int32", "int64", "int8", "string", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip


def as_dtype(tf, ask):
    names = {f"name {name}": ask(tf.as_dtype, name) for name in NAMES}
    types = {
        "np.int32": np.int32,
        "np.float64": np.float64,
        "np.bool_": np.bool_,
        "np.str_": np.str_,
        "np.bytes_": np.bytes_,
        "np.object_": np.object_,
        "np.dtype": np.dtype("uint8"),
        "np.dtype S3": np.dtype("S3"),
        "np.dtype U3": np.dtype("U3"),
        "np.dtype >i4": np.dtype(">i4"),
        "float": float,
        "bool": bool,
        "object": object,
        "int": int,
        "str": str,
        "bytes": bytes,
        "complex": complex,
        "list": list,
        "np.datetime64": np.dtype("datetime64[s]"),
        "None": None,
        "number": 7.5,
        "name float": "float",
        "name int": "int",
        "name str": "str",
        "name object": "object",
        "name of NumPy i4": "i4",
        "name in capitals": "INT32",
        "no such name": "int33",
        "empty name": "",
    }
    return names | {label: ask(tf.as_dtype, value) for label, value in types.items()}


def attributes(tf, ask):
    return {name: ask(lambda name=name: tf.as_dtype(name) == getattr(tf, name)) for name in NAMES}


def in_tensors(tf, ask):
    numbers = [name for name in NAMES if name not in ("string", "bool")]
    return {name: ask(lambda name=name: tf.constant([0, 1], name)) for name in numbers}
