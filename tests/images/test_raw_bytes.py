import numpy as np
import pytest

import evenfeed as tf


@pytest.mark.parametrize("dtype", [tf.int8, tf.int16, tf.int64, tf.float32, tf.complex64, tf.bool])
def test_numbers_survive_as_bytes(dtype):
    numbers = np.array([0, 1, 1, 0]).astype(dtype)
    np.testing.assert_array_equal(tf.io.decode_raw(numbers.tobytes(), dtype), numbers)
    swapped = tf.io.decode_raw(numbers.byteswap().tobytes(), dtype, little_endian=False)
    np.testing.assert_array_equal(swapped, numbers)


def test_what_is_decoded_may_be_written_to():
    found = tf.io.decode_raw(b"ab", tf.uint8)
    found[0] = 1
    assert found.tolist() == [1, 98]


def test_no_text_at_all():
    assert tf.io.decode_raw(np.array([], object), tf.uint8).shape == (0, 0)
