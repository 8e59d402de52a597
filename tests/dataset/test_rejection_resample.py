import pickle
from collections import Counter

import numpy as np
import pytest
from tests.plans import through_json
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.dataset import rejection_resample

Dataset = tf.data.Dataset
HALF = [0.5, 0.5]


def rare(count=4_000):
    """Return a dataset in which one element in ten has class 1."""
    return Dataset.range(count)


def is_rare(x):
    return tf.cast(x % 10 == 0, tf.int32)


def shares(dataset, classes=2):
    counts = np.bincount([int(c) for c, _ in dataset], minlength=classes)
    return counts / counts.sum()


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
@pytest.mark.parametrize("target", [[0.5, 0.5], [0.2, 0.8], [0.95, 0.05]])
def test_classes_follow_the_target_distribution(initial, target):
    dataset = rare().rejection_resample(is_rare, target, initial, seed=3)
    np.testing.assert_allclose(shares(dataset), target, atol=0.04)


def test_many_classes_follow_the_target_distribution():
    target = [0.1, 0.2, 0.3, 0.4]
    dataset = Dataset.range(4_000).rejection_resample(lambda x: x % 4, target, seed=3)
    np.testing.assert_allclose(shares(dataset, 4), target, atol=0.03)


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_every_element_is_paired_with_its_class(initial):
    dataset = rare(500).rejection_resample(is_rare, [0.3, 0.7], initial, seed=3)
    elements = [(int(c), int(x)) for c, x in dataset]
    assert elements
    assert all(c == (x % 10 == 0) for c, x in elements)
    assert (
        max(Counter(elements).values()) <= 2
    )  # once from the original, once from the filtered dataset


@pytest.mark.parametrize("initial", [None, [0.25] * 4])
def test_seeds_decide(initial):
    def order(seed):
        target = [0.1, 0.2, 0.3, 0.4]
        dataset = Dataset.range(400).rejection_resample(lambda x: x % 4, target, initial, seed)
        return [int(x) for _, x in dataset]

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in (1, 2, None, None)}) == 4


def test_rounds_of_a_repetition_differ():
    dataset = Dataset.range(400).rejection_resample(
        lambda x: x % 4, [0.1, 0.2, 0.3, 0.4], [0.25] * 4, seed=2
    )
    once = [int(x) for _, x in dataset]
    twice = [int(x) for _, x in dataset.repeat(2)]
    assert twice[: len(once)] == once
    assert twice[len(once) :] != once


@pytest.mark.parametrize("initial", [None, [0.9, 0.1]])
def test_a_restored_iterator_goes_on(initial):
    def dataset():
        return rare(120).rejection_resample(is_rare, HALF, initial, seed=3)

    iterator, states = iter(dataset()), []
    whole = []
    for c, x in iterator:
        whole.append((int(c), int(x)))
        states.append(through_json(iterator.get_state()))
    assert len(whole) > 5
    for done, state in [*enumerate(states, 1)][:: max(1, len(states) // 6)]:
        restored = iter(dataset())
        restored.set_state(state)
        assert [(int(c), int(x)) for c, x in restored] == whole[done:]


def test_elements_with_text_and_functions_that_do_not_trace():
    dataset = Dataset.from_tensor_slices((["a", "b", "b", "b"] * 200, [[1.0]] * 800))
    even = dataset.rejection_resample(
        lambda letter, _: np.int32(letter == b"a"), HALF, [0.75, 0.25], seed=1
    )
    assert even.element_spec[1] == (tf.TensorSpec([], tf.string), tf.TensorSpec([1], tf.float32))
    elements = [(int(c), letter.item()) for c, (letter, _) in even]
    assert all(c == (letter == b"a") for c, letter in elements)
    np.testing.assert_allclose(np.mean([c for c, _ in elements]), 0.5, atol=0.06)


def one_or_none(x):
    return x % 2


def test_it_can_be_pickled():
    dataset = Dataset.range(60).rejection_resample(one_or_none, [0.3, 0.7], seed=1)
    again = pickle.loads(pickle.dumps(dataset))
    assert [int(x) for _, x in again] == [int(x) for _, x in dataset]


def test_an_invalid_distribution_is_refused():
    for value in (0.5, [[0.5, 0.5]], [], ["a", "b"]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be a vector of numbers"):
            rare().rejection_resample(is_rare, value)
    with error_saying(
        tf.errors.InvalidArgumentError,
        "target_dist has 2 classes, but initial_dist has 3.",
        fix="pass one number per class in both.",
    ):
        rare().rejection_resample(is_rare, HALF, [0.2, 0.3, 0.5])


def test_a_class_that_does_not_exist_is_an_error_when_it_comes():
    for function in (lambda x: x, lambda x: x - 3):
        dataset = Dataset.range(8).rejection_resample(function, [0.0, 1.0], HALF)
        with pytest.raises(tf.errors.InvalidArgumentError, match="An index is out of range"):
            list(dataset)


def test_the_probabilities_reject_the_fewest_elements():
    kept, original = rejection_resample.chances(
        np.array([0.9, 0.1], np.float32), np.array([0.5, 0.5], np.float32)
    )
    np.testing.assert_allclose(kept, [0, 1])
    np.testing.assert_allclose(original, 5 / 9)
    mixed = original * np.array([0.9, 0.1]) + (1 - original) * np.array([0.0, 1.0])
    np.testing.assert_allclose(mixed, HALF)


def test_an_estimate_starts_uniform_and_follows_the_data():
    counts, parts = rejection_resample.estimated(
        rejection_resample.initial_counts(2), np.array([1, 1, 1, 0, 7])
    )
    assert counts.tolist() == [11, 13]
    assert parts.shape == (32, 2)
    np.testing.assert_allclose(parts[5], [11 / 24, 13 / 24])
