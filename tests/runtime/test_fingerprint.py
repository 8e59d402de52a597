import numpy as np
import pytest
from hypothesis import given, settings
from tests.plans import fresh, plans

from evenfeed.dataset import Dataset, plan_of
from evenfeed.runtime.fingerprint import _NOT_IN_FINGERPRINT, _parts_of, fingerprint


def print_of(dataset):
    return fingerprint(plan_of(dataset))


@settings(max_examples=50)
@given(plans())
def test_plans_made_alike_have_one_fingerprint(plan):
    assert fingerprint(plan) == fingerprint(fresh(plan))


def test_a_list_and_an_array_of_the_same_are_one():
    one = Dataset.from_tensor_slices(([1, 2], np.zeros(2)))
    two = Dataset.from_tensor_slices((np.array([3, 4], np.int32), [np.float64(1)] * 2))
    assert print_of(one) == print_of(two)


def test_seeds_are_not_looked_at():
    assert print_of(Dataset.range(5).shuffle(3)) == print_of(Dataset.range(5).shuffle(3, seed=9))


def _second(key, x):
    return x


def _itself(x):
    return x


A, B = Dataset.range(5), Dataset.range(6)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (A, B),
        (A, Dataset.range(5, output_type="int32")),
        (A.take(3), A.skip(3)),
        (A.take(3), A.take(4)),
        (A.shuffle(3), A.shuffle(4)),
        (A.shuffle(3), A.shuffle(3, reshuffle_each_iteration=False)),
        (A.shard(3, 1), A.shard(3, 2)),
        (A.random_map(_second, vectorize=False), A.map(_itself, vectorize=False)),
        (A.batch(2), A.batch(2, drop_remainder=True)),
        (A.enumerate(), A.enumerate(1)),
        (A.concatenate(B), B.concatenate(A)),
        (Dataset.zip(A, B), Dataset.zip(B, A)),
        (Dataset.zip(A, B), Dataset.zip(A, B, A)),
        (Dataset.zip({"a": A, "b": B}), Dataset.zip({"a": A, "c": B})),
        (Dataset.from_tensors([1, 2]), Dataset.from_tensor_slices([1, 2])),
        (Dataset.from_tensor_slices([1, 2]), Dataset.from_tensor_slices([1, 2, 3])),
        (Dataset.from_tensor_slices([1, 2]), Dataset.from_tensor_slices([1.0, 2])),
        (Dataset.from_tensor_slices({"a": [1]}), Dataset.from_tensor_slices({"b": [1]})),
    ],
)
def test_plans_that_read_otherwise_have_two(one, two):
    assert print_of(one) != print_of(two)


def test_a_long_list_costs_nothing():
    dataset = Dataset.from_tensor_slices(list(range(300_000)))
    assert len(repr(_parts_of(plan_of(dataset), {}, _NOT_IN_FINGERPRINT))) < 1000


# Fingerprints in states that earlier versions saved.
SAVED = {
    "cache": (A.cache(), "fb8ba4ede40fdbf4"),
    "cache in files": (A.cache("name"), "fb8ba4ede40fdbf4"),
    "ignore_errors": (A.ignore_errors(max_total=3), "af8e9b7f1cb258a6"),
    "shuffle": (A.shuffle(3), "0d0b8bd5ccbc5f8c"),
    "random_map": (A.random_map(_second, vectorize=False), "9aee454534dabf36"),
    "sample": (Dataset.sample_from_datasets([A, A]), "f69b0733d7a8fb0a"),
    "random": (Dataset.random(), "703840acf850f1c3"),
    "flat_map": (A.flat_map(lambda _: Dataset.range(3)), "88f8be61147bc2a8"),
    "rejection_resample": (A.rejection_resample(lambda _: 0, [1.0]), "9fb9e8650fbe6b1e"),
    "several": (A.cache().ignore_errors().cache(), "067e3c5456cf8a93"),
}


@pytest.mark.parametrize(("dataset", "expected"), SAVED.values(), ids=list(SAVED))
def test_states_of_earlier_versions_still_fit(dataset, expected):
    assert print_of(dataset) == expected
