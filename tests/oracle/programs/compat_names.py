"""Names of `compat`: conversions of text, and what programs for TensorFlow 2 use of `compat.v1`."""

import pathlib

import numpy as np


def text(tf, ask):
    compat = tf.compat
    return {
        "as_bytes": ask(compat.as_bytes, "é"),
        "as_bytes of bytes": ask(compat.as_bytes, b"x"),
        "as_bytes of a bytearray": ask(compat.as_bytes, bytearray(b"x")),
        "as_bytes of a number": ask(compat.as_bytes, 1),
        "as_bytes of a tensor": ask(compat.as_bytes, tf.constant("x")),
        "as_bytes in Latin-1": ask(compat.as_bytes, "é", "latin-1"),
        "as_text": ask(compat.as_text, b"\xc3\xa9"),
        "as_text of text": ask(compat.as_text, "a"),
        "as_text of a number": ask(compat.as_text, 1),
        "as_text of a bytearray": ask(compat.as_text, bytearray(b"x")),
        "as_text of no UTF-8": ask(compat.as_text, b"\xff"),
        "as_str": ask(compat.as_str, b"a"),
        "as_str_any": ask(compat.as_str_any, b"a"),
        "as_str_any of a number": ask(compat.as_str_any, 5),
        "path_to_str": ask(compat.path_to_str, pathlib.PurePosixPath("a/b")),
        "path_to_str of text": ask(compat.path_to_str, "a"),
        "path_to_str of bytes": ask(compat.path_to_str, b"a"),
        "dimension_value": ask(compat.dimension_value, tf.TensorShape([2, None])[0]),
        "dimension_value unknown": ask(compat.dimension_value, tf.TensorShape([2, None])[1]),
        "types": [
            isinstance(value, kinds)
            for kinds in (
                compat.bytes_or_text_types,
                compat.complex_types,
                compat.integral_types,
                compat.real_types,
            )
            for value in ("a", b"a", 1, 1.5, 1j, np.int8(1), np.float32(1), np.complex64(1))
        ],
        "v2": compat.v2.reduce_sum([1, 2]),
    }


def datasets(tf, ask):
    data = tf.compat.v1.data
    pairs = tf.data.Dataset.range(3).map(lambda x: {"a": x, "b": tf.cast(x, tf.float32)})
    iterator = data.make_one_shot_iterator(tf.data.Dataset.range(2))
    return {
        "get_next": [int(iterator.get_next()), int(next(iterator))],
        "at the end": ask(iterator.get_next),
        "types": ask(data.get_output_types, pairs),
        "types of an iterator": ask(data.get_output_types, iter(pairs)),
        "shapes": ask(data.get_output_shapes, pairs),
        "shapes of batches": ask(data.get_output_shapes, pairs.batch(2)),
        "classes": [kind.__name__ for kind in data.get_output_classes(pairs).values()],
        "a ragged class": ask(
            data.get_output_classes, tf.data.Dataset.from_tensors(tf.ragged.constant([[1]]))
        ),
        "types of sparse": ask(
            data.get_output_types, tf.data.Dataset.from_tensors(tf.sparse.from_dense([1]))
        ),
        "reduced": ask(lambda: int(data.Dataset.range(3).reduce(np.int64(0), tf.add))),
    }


def behaviour(tf, ask):
    v1 = tf.compat.v1
    return {
        "enable_v2_behavior": ask(v1.enable_v2_behavior),
        "enable_eager_execution": ask(v1.enable_eager_execution),
        "enable_resource_variables": ask(v1.enable_resource_variables),
        "enable_control_flow_v2": ask(v1.enable_control_flow_v2),
        "enable_tensor_equality": ask(v1.enable_tensor_equality),
        "enable_v2_tensorshape": ask(v1.enable_v2_tensorshape),
        "outside": ask(v1.executing_eagerly_outside_functions),
        "control flow": ask(v1.control_flow_v2_enabled),
        "resources": ask(v1.resource_variables_enabled),
        "eagerly": ask(v1.executing_eagerly),
        "levels": [
            getattr(v1.logging, level) for level in ["DEBUG", "INFO", "WARN", "ERROR", "FATAL"]
        ],
        "same": [
            getattr(v1, name) is getattr(tf, name)
            for name in [
                "cast",
                "concat",
                "reshape",
                "matmul",
                "float32",
                "function",
                "TensorArray",
                "Tensor",
            ]
        ],
    }
