"""Datasets that fail at some elements, and what comes out of them: TensorFlow's answers are the tests'."""

from typing import Any

import numpy as np

import evenfeed as tf

ERROR = "error"


def unless(*bad: int) -> Any:
    """Return a function that fails at some numbers and gives back the others."""

    def checked(number: Any) -> Any:
        if int(number) in bad:
            raise ValueError(f"{int(number)} is bad")
        return np.int64(number)

    return checked


def failing(size: int, *bad: int) -> tf.data.Dataset:
    """Return a range that fails at some of its numbers."""
    spec = tf.TensorSpec([], tf.int64)
    return tf.data.Dataset.range(size).map(unless(*bad), output_signature=spec)


def outcome(dataset: tf.data.Dataset, limit: int = 40) -> list[Any]:
    """Return the elements as plain values, ERROR where one failed."""
    iterator, found = iter(dataset), []
    while len(found) < limit:
        try:
            found.append(_plain(next(iterator)))
        except StopIteration:
            return found
        except (ValueError, tf.errors.OpError):
            found.append(ERROR)
    return found


def _plain(element: Any) -> Any:
    if isinstance(element, tf.data.Dataset):
        return [_plain(inner) for inner in element]
    return tuple(map(_plain, element)) if isinstance(element, tuple) else element.tolist()
