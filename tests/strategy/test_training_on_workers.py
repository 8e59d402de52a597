"""Training gives the same results for any number of workers and replicas, up to float rounding."""

import numpy as np
import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow


def weights(model, workers, replicas):
    """Return the weights of a model on every worker, each as one row."""
    seen = seen_by_workers("train_workers.py", workers, replicas)
    return [
        np.concatenate([np.ravel(array) for array in seen[worker][model]])
        for worker in range(workers)
    ]


def regression_by_hand():
    """Return the weights after gradient descent on the mean of each batch, in NumPy."""
    random = np.random.default_rng(3)
    x = random.normal(size=(13, 3)).astype(np.float32)
    y = (x @ np.array([1.0, -2.0, 0.5]) + 0.25 * x[:, 0] ** 2).astype(np.float32)
    weight, bias = np.zeros(3), 0.0
    for _ in range(3):
        for first in (0, 8):
            rows, wanted = x[first : first + 8], y[first : first + 8]
            error = rows @ weight + bias - wanted
            weight, bias = weight - 0.2 * error @ rows / len(rows), bias - 0.2 * error.mean()
    return np.array([*weight, bias])


@pytest.mark.parametrize("model", ["linear", "network"])
@pytest.mark.parametrize(("workers", "replicas"), [(2, 2), (4, 1)])
def test_weights_agree_with_those_of_one_worker(model, workers, replicas):
    (alone,) = weights(model, 1, 4)
    for found in weights(model, workers, replicas):
        np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-6)


def test_they_are_those_of_numpy():
    np.testing.assert_allclose(weights("linear", 1, 4)[0], regression_by_hand(), rtol=1e-5)


@pytest.mark.parametrize(("workers", "replicas"), [(2, 2), (4, 1)])
def test_every_worker_has_the_same_bits(workers, replicas):
    for model in ("linear", "network"):
        first, *others = weights(model, workers, replicas)
        for other in others:
            np.testing.assert_array_equal(first, other)


def test_every_worker_sees_what_one_with_all_replicas_sees():
    alone = seen_by_workers("train_workers.py", 1, 4)[0]["results"]
    for seen in seen_by_workers("train_workers.py", 2, 2).values():
        found = seen["results"]
        assert found.keys() == alone.keys()
        for name, expected in alone.items():
            if isinstance(expected, str):
                assert found[name] == expected, name
            else:
                np.testing.assert_allclose(
                    numbers(found[name]), numbers(expected), rtol=1e-6, err_msg=name
                )


def numbers(value):
    """Return all numbers in nested lists."""
    return [x for part in value for x in numbers(part)] if isinstance(value, list) else [value]
