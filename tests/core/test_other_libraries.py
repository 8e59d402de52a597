"""Values of other libraries become arrays, or raise an error with a fix."""

import jax
import numpy as np
import pandas as pd
import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.conversion import to_array


class Foreign:
    """Like a PyTorch tensor: its dtype is not a NumPy dtype."""

    def __init__(self, array, refuses=None):
        self.array, self.refuses = array, refuses
        self.shape, self.dtype = array.shape, f"other.{array.dtype}"

    def __array__(self, dtype=None, copy=None):
        if self.refuses:
            raise RuntimeError(self.refuses)
        return self.array


def read(value):
    return listed(tf.data.Dataset.from_tensor_slices(value))


def listed(dataset):
    return [x.tolist() for x in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_a_tensor_of_another_library_keeps_its_dtype(dtype):
    foreign = Foreign(np.ones((2, 2), dtype))
    assert tf.data.Dataset.from_tensor_slices(foreign).element_spec == tf.TensorSpec([2], dtype)
    assert read(foreign) == [[1, 1], [1, 1]]
    assert read([foreign, foreign]) == [[[1, 1], [1, 1]]] * 2


def test_a_tensor_that_numpy_cannot_convert_says_why():
    foreign = Foreign(
        np.ones(2, np.float32), refuses="It requires a gradient. Call detach().\nMore."
    )
    with error_saying(
        TypeError,
        "A Foreign of dtype other.float32 cannot become a tensor: It requires a gradient. Call detach().",
        fix="convert it to a NumPy array first; …",
    ):
        tf.constant(foreign)


def test_columns_that_differ_in_kind_are_passed_as_a_dict():
    frame = pd.DataFrame({"a": [1, 2], "t": ["x", "y"]})
    with error_saying(
        ValueError,
        "A tensor holds one kind of value, but the columns of this DataFrame differ.",
        fix="pass the columns as a dict: dict(frame).",
    ):
        tf.data.Dataset.from_tensor_slices(frame)
    assert list(tf.data.Dataset.from_tensor_slices(dict(frame)).as_numpy_iterator()) == [
        {"a": 1, "t": b"x"},
        {"a": 2, "t": b"y"},
    ]


def test_a_map_may_return_a_tensor_of_another_library():
    made = tf.data.Dataset.range(2).map(lambda x: Foreign(np.full(2, int(x), np.float32)))
    assert listed(made) == [[0, 0], [1, 1]]


def test_a_tracer_keeps_the_jax_error_that_ends_tracing():
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(to_array)(1.0)
