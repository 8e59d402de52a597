"""Functions that move values give the same in a map that runs per element, where NumPy moves them, as outside."""

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.lazy_jax import jax

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)

MOVES = {
    "boolean_mask": lambda x: tf.boolean_mask(x, tf.cast([1, 0, 1], tf.bool)),
    "boolean_mask_columns": lambda x: tf.boolean_mask(x, tf.cast([1, 0, 1, 0], tf.bool), axis=1),
    "cast": lambda x: tf.cast(x, tf.int16),
    "concat": lambda x: tf.concat([x, x], 1),
    "dynamic_partition": lambda x: tuple(tf.dynamic_partition(x, [1, 0, 1], 2)),
    "broadcast_to": lambda x: tf.broadcast_to(x[0], [2, 4]),
    "diag_part": tf.linalg.diag_part,
    "expand_dims": lambda x: tf.expand_dims(x, 1),
    "fill": lambda x: tf.fill([2, 3], x[1, 1]),
    "identity": tf.identity,
    "ones_like": tf.ones_like,
    "ones": lambda x: tf.ones(tf.shape(x), tf.int32),
    "pad": lambda x: tf.pad(x, [[1, 0], [0, 2]], constant_values=7.0),
    "pad_reflect": lambda x: tf.pad(x, [[1, 0], [0, 2]], "REFLECT"),
    "repeat": lambda x: tf.repeat(x, [1, 0, 2], axis=0),
    "reverse": lambda x: tf.reverse(x, [1]),
    "roll": lambda x: tf.roll(x, 1, 0),
    "split": lambda x: tuple(tf.split(x, 2, axis=1)),
    "squeeze": lambda x: tf.squeeze(x[:1]),
    "stack": lambda x: tf.stack([x, x], 1),
    "strided_slice": lambda x: tf.strided_slice(x, [0, 1], [3, 4], [2, 2]),
    "tile": lambda x: tf.tile(x, [1, 2]),
    "transpose": tf.transpose,
    "unique": lambda x: tuple(tf.unique(tf.identity(x[0]))),
    "unique_with_counts": lambda x: tuple(tf.unique_with_counts(x[0], tf.int64)),
    "unstack": lambda x: tuple(tf.unstack(x)),
    "where": lambda x: tf.where(tf.cast(x, tf.bool)),
    "zeros_like": lambda x: tf.zeros_like(x, tf.int16),
    "zeros": lambda x: tf.zeros([x.shape[1]], tf.uint8),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_elements_get_what_a_tensor_gets(move) -> None:
    kinds = []

    def moved(x):
        found = move(x)
        kinds.append(isinstance(found[0] if isinstance(found, tuple) else found, jax.Array))
        return found

    data = tf.data.Dataset.from_tensors(VALUES).map(moved, vectorize=False)
    (found,) = data
    assert kinds[-1] is False  # it is called with the element last
    expected = move(tf.constant(VALUES))
    for one, two in zip(_list(found), _list(expected), strict=True):
        assert np.asarray(one).tolist() == np.asarray(two).tolist()
    assert data.element_spec == tf.data.Dataset.from_tensors(VALUES).map(move).element_spec


NUMBERS = {
    tf.int64: [-(2**63), -(2**40) - 1, 0, 2**24 + 1, 2**63 - 1],
    tf.uint64: [0, 2**63, 2**64 - 1],
    tf.float16: [-1.75, 65504.0, float("inf"), float("nan")],
    tf.float32: [-1e30, -2.9, 2.5, 3e9, 5e9, 1e19, float("-inf"), float("nan")],
    tf.float64: [-1e300, -0.5, 2.0**53 + 2, 1e300, float("nan")],
}
NEW = [tf.bool, tf.int8, tf.int64, tf.uint32, tf.uint64, tf.float32]


@pytest.mark.parametrize("new", NEW, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("own", NUMBERS, ids=lambda dtype: dtype.name)
def test_elements_are_cast_to_the_numbers_that_a_tensor_is_cast_to(own, new) -> None:
    values = np.array(NUMBERS[own], own)
    with jax.enable_x64(True):
        expected = np.asarray(tf.cast(tf.constant(values), new))
    (found,) = tf.data.Dataset.from_tensors(values).map(lambda x: tf.cast(x, new), vectorize=False)
    assert found.dtype == expected.dtype == new
    assert np.asarray(found).tobytes() == expected.tobytes()


def test_a_moved_element_is_not_a_view_of_it() -> None:
    def written(x):
        tf.reverse(x, [0]).numpy()[:] = 9
        kept = tf.identity(x)
        return x + 0, kept

    ((found, kept),) = tf.data.Dataset.from_tensors(VALUES).map(written, vectorize=False)
    np.testing.assert_array_equal(found, VALUES)
    np.testing.assert_array_equal(kept, VALUES)


def _list(found):
    return list(found) if isinstance(found, tuple) else [found]
