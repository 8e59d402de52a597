"""`class_weight` of `fit` as sample weights."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from evenfeed.core.errors import described
from evenfeed.keras_training import keras_private

_ops: Final[Any] = keras_private.keras.ops


def weighing(class_weight: dict[int, float]) -> Callable[..., Any]:
    """Return a function that adds sample weights to a batch `(x, y)`. Classes without a weight get 1."""
    count = max(class_weight, default=-1) + 1
    weights = np.array([*(class_weight.get(c, 1.0) for c in range(count)), 1.0], np.float32)

    def weighed(*batch: Any) -> Any:
        x, y, sample_weight = keras_private.unpack_batch(batch)
        if sample_weight is not None:
            raise ValueError(
                described(
                    "class_weight was passed, but the dataset has sample weights.",
                    fix="leave one of them out.",
                )
            )
        classes = _classes(y)
        known = _ops.logical_and(classes >= 0, classes < count)
        return x, y, _ops.take(weights, _ops.where(known, classes, count))

    return weighed


def _classes(y: Any) -> Any:
    if y is None or isinstance(y, (dict, tuple, list)):
        raise ValueError(
            described(
                "class_weight needs a dataset of pairs (x, y) in which y is one tensor.",
                fix="pass sample weights as the third part of each element: (x, y, weights).",
            )
        )
    if len(y.shape) > 1:
        y = _ops.argmax(y, -1) if y.shape[-1] > 1 else _ops.squeeze(y, -1)
    return _ops.cast(_ops.round(y), "int32")
