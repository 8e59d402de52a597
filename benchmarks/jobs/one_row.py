"""One row, shuffled and repeated, in a plain loop."""

from itertools import repeat
from typing import Any

import numpy as np
from timing import main, rate


def rows(_: Any) -> int:
    """Count an element."""
    return 1


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it like tf.data."""
    import evenfeed as tf

    return _like_tf_data(tf, seconds)


def tensorflow(seconds: float) -> dict[str, float]:
    """Write it as in TensorFlow's guides."""
    import tensorflow as tf

    return _like_tf_data(tf, seconds)


def _like_tf_data(tf: Any, seconds: float) -> dict[str, float]:
    return rate(tf.data.Dataset.from_tensors(np.zeros(4)).shuffle(10).repeat(), rows, seconds)


def limit(seconds: float) -> dict[str, float]:
    """Return the array again and again."""
    return rate(repeat(np.zeros(4)), rows, seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
