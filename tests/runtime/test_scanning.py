import json

import numpy as np
import pytest
from tests.failing import ERROR, failing, outcome, unless

import evenfeed as tf
from evenfeed.core.promotion import computed_tensor
from evenfeed.runtime.functions.calls import host_rules


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


FOLDS = [
    (np.int64(3), lambda s, x: (s * 3 + x // 2, (s, x))),
    (np.float32(0.5), lambda s, x: (s * 0.9 + tf.cast(x, tf.float32), s / 3.0)),
    (np.float32(0.5), lambda s, x: (tf.sin(s) + tf.cast(x, tf.float32), tf.exp(s))),
    ((np.int64(0), np.zeros(3, np.float32)), lambda s, x: ((x, s[1] + 1.5), (s[0], s[1]))),
    (np.int64(1), lambda s, x: (s, np.int32(7))),
    (np.int32(1), lambda s, x: (s + tf.cast(x % 2 == 0, tf.int32), x)),
]


def as_argument(value):
    return computed_tensor(np.asarray(value))


@pytest.mark.parametrize("number", range(len(FOLDS)))
def test_a_traced_function_folds_as_it_does_in_python(number):
    initial, function = FOLDS[number]
    state, expected = initial, []
    for x in range(40):
        given = tf.nest.map_structure(as_argument, (state, np.int64(x)))
        with host_rules():
            state, output = function(*given)
        state = tf.nest.map_structure(np.asarray, state)
        expected.append([np.asarray(part) for part in tf.nest.flatten(output)])
    dataset = tf.data.Dataset.range(40).scan(initial, function)
    found = [[np.asarray(part) for part in tf.nest.flatten(one)] for one in dataset]
    for one, two in zip(found, expected, strict=True):
        for part, other in zip(one, two, strict=True):
            assert part.shape == other.shape
            np.testing.assert_allclose(part, other, rtol=1e-5)
    whole = tf.data.Dataset.range(40).reduce(initial, lambda s, x: function(s, x)[0])
    for part, other in zip(tf.nest.flatten(whole), tf.nest.flatten(state), strict=True):
        np.testing.assert_allclose(np.asarray(part), np.asarray(other), rtol=1e-5)
    iterator, again = iter(dataset.batch(7)), iter(dataset.batch(7))
    next(iterator)
    again.set_state(json.loads(json.dumps(iterator.get_state())))
    for one, two in zip(iterator, again, strict=True):
        for part, other in zip(tf.nest.flatten(one), tf.nest.flatten(two), strict=True):
            assert part.tobytes() == other.tobytes()


def test_a_traced_function_is_not_called_for_each_element():
    dataset, called = running_sum()
    called.clear()
    assert int(list(dataset)[-1]) == sum(range(3000))
    assert called == []


def running_sum(initial=0, size=3000):
    called = []

    def add(total, x):
        called.append(x)
        return total + x, total + x

    return tf.data.Dataset.range(size).scan(np.int64(initial), add), called


def test_what_is_carried_is_in_the_state_and_little_is_computed_again():
    dataset, called = running_sum()
    iterator = iter(dataset)
    for _ in range(2000):
        next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    called.clear()
    restored = iter(dataset)
    restored.set_state(state)
    assert int(next(restored)) == sum(range(2001))
    assert len(called) < 500  # no more than one read of some milliseconds


def resumes(dataset):
    return dataset.explain().splitlines()[-1]


def test_explain_says_where_a_state_is_large_because_of_what_is_carried():
    numbers = tf.data.Dataset.range(9)
    assert resumes(running_sum()[0]) == "resume: by position"
    large = numbers.scan(np.zeros(3000, np.float32), lambda s, x: (s, x))
    assert resumes(large) == (
        "resume: by position; the state includes what step 2 scan carries: 16,052 bytes"
    )
    growing = numbers.scan(
        np.zeros([0], np.int64), lambda s, x: (np.concatenate([s, [x]]), np.int64(len(s)))
    )
    assert [int(x) for x in growing] == list(range(9))
    assert resumes(growing).endswith("bytes initially, and may grow")


def test_what_is_carried_keeps_its_dtype_and_shape_in_a_state():
    for carried in (
        "text",
        np.array([b"a", b""], object),
        np.zeros((0, 3)),
        tf.constant([1.5], tf.bfloat16),
    ):
        dataset = tf.data.Dataset.range(4).scan(carried, lambda s, x: (s, (s, x)))
        iterator = iter(dataset)
        next(iterator)
        restored = iter(dataset)
        restored.set_state(json.loads(json.dumps(iterator.get_state())))
        for (one, _), (other, _) in zip(iterator, restored, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other), strict=True)


def test_a_state_may_change_its_rank():
    deeper = tf.data.Dataset.range(3).scan(1, lambda s, x: (tf.stack([s, s]), (s, x)))
    assert deeper.element_spec[0] == tf.TensorSpec(None, tf.int32)
    assert deeper.element_spec[1] == tf.TensorSpec([], tf.int64)
    assert [s.shape for s, _ in deeper] == [(), (2,), (2, 2)]


def test_a_state_that_changes_its_rank_is_restored():
    deeper = tf.data.Dataset.range(4).scan("a", lambda s, x: (tf.stack([s]), s))
    iterator, restored = iter(deeper), iter(deeper)
    next(iterator), next(iterator)
    restored.set_state(json.loads(json.dumps(iterator.get_state())))
    assert [s.shape for s in restored] == [(1, 1), (1, 1, 1)]


@pytest.mark.parametrize(
    "function",
    [
        lambda s, x: tf.stack([s, s]),
        lambda s, x: tf.stack([s, s]) if int(x) < 9 else s,  # is not traced
    ],
)
def test_a_state_may_change_its_rank_in_reduce(function):
    assert tf.data.Dataset.range(3).reduce(1, function).shape == (2, 2, 2)
