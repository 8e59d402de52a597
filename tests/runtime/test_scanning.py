import numpy as np
from tests.failing import ERROR, failing, outcome, unless

import evenfeed as tf


def test_a_state_is_carried_along():
    sums = tf.data.Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, s + x))
    assert outcome(sums) == outcome(sums) == [0, 1, 3, 6, 10]


def test_what_fails_leaves_the_state_as_it_was():
    assert outcome(failing(6, 3).scan(np.int64(0), lambda s, x: (s + x, s + x))) == [
        *(0, 1, 3, ERROR, 7, 12)
    ]
    good = unless(3)
    sums = tf.data.Dataset.range(6).scan(np.int64(0), lambda s, x: (s + good(x), s + good(x)))
    assert outcome(sums) == [0, 1, 3, ERROR, 7, 12]


def test_functions_of_text_and_of_values_fold_too():
    words = tf.data.Dataset.from_tensor_slices(["a", "bc", "d"])
    assert words.reduce("", lambda s, word: s + word).item() == b"abcd"
    assert outcome(words.scan("", lambda s, word: (s + word, word + s))) == [b"a", b"bca", b"dabc"]
    assert words.take(0).reduce("none", lambda s, word: s + word).item() == b"none"
    lengths = tf.data.Dataset.range(4).reduce(np.int64(0), lambda s, x: s + (int(x) > 1))
    assert (int(lengths), lengths.dtype) == (2, np.int64)
