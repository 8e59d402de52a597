import numpy as np
import pytest
from tests.failing import ERROR, outcome

import evenfeed as tf

NAMES = ["cat", "dog", "bird"]
RANGE = tf.data.Dataset.range(40)
ROW = tf.TensorSpec([None], tf.int64)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda i: tf.gather(NAMES, i % 3), lambda i: NAMES[i % 3]),
        (lambda i: tf.gather(NAMES, [i % 3, 0]), lambda i: [NAMES[i % 3], "cat"]),
        (lambda i: tf.strings.length(tf.gather(NAMES, i % 3)), lambda i: len(NAMES[i % 3])),
        (lambda i: tf.gather(NAMES, i % 3) + "s", lambda i: NAMES[i % 3] + "s"),
        (lambda i: tf.gather(NAMES, i % 3) == "dog", lambda i: i % 3 == 1),
    ],
)
def test_texts_are_picked_on_whole_blocks(function, expected):
    dataset = RANGE.map(function)
    assert "per element" not in dataset.explain()
    for number, found in enumerate(dataset):
        wanted = np.asarray(expected(number))
        assert found.shape == wanted.shape == tuple(dataset.element_spec.shape)
        assert np.char.decode(found.astype("S")).tolist() == wanted.astype(str).tolist()


def test_rows_of_different_lengths_pick_texts():
    rows = RANGE.take(4).map(lambda i: np.arange(int(i) % 3), output_signature=ROW)
    picked = rows.map(lambda row: tf.gather(NAMES, row))
    assert [one.tolist() for one in picked] == [[], [b"cat"], [b"cat", b"dog"], []]


def test_an_index_out_of_range_fails_for_its_element():
    picked = tf.data.Dataset.range(-1, 5).map(lambda i: tf.gather(NAMES, i))
    assert outcome(picked) == [ERROR, b"cat", b"dog", b"bird", ERROR, ERROR]


def test_a_long_table_is_picked_from_element_by_element():
    names = [str(number) for number in range(20_000)]
    picked = RANGE.map(lambda i: tf.gather(names, i * 400))
    assert [int(one) for one in picked.take(3).as_numpy_iterator()] == [0, 400, 800]
