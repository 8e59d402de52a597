"""Whose memory an element is: what may be written to, and what changes then."""

import numpy as np


def elements(tf, ask):
    source = np.arange(6.0).reshape(2, 3)
    (whole,) = tf.data.Dataset.from_tensors(source)
    (row, _) = tf.data.Dataset.from_tensor_slices(source)
    (batch,) = tf.data.Dataset.from_tensor_slices(source).batch(2)
    (text,) = tf.data.Dataset.from_tensors(["a", "b"])
    answers = {}
    for label, tensor in (("whole", whole), ("row", row), ("batch", batch), ("text", text)):
        answers |= {
            f"{label}, numpy() can be written to": ask(lambda t=tensor: t.numpy().flags.writeable),
            f"{label}, written": ask(_written, tensor),
            f"{label}, asarray can be written to": ask(
                lambda t=tensor: np.asarray(t).flags.writeable
            ),
        }
    for label, tensor in (("whole", whole), ("row", row), ("batch", batch)):
        answers[f"{label}, a view is read-only"] = ask(lambda t=tensor: memoryview(t).readonly)
    plain = next(iter(tf.data.Dataset.from_tensors(source).as_numpy_iterator()))
    answers["as_numpy_iterator can be written to"] = plain.flags.writeable
    answers["the source"] = source
    return answers


def _written(tensor):
    tensor.numpy()[...] = tensor.numpy().flat[0]
    return tensor
