"""Datasets share what is kept of a node that both contain. Datasets that are only equal share nothing."""

import copy
import pickle
from itertools import count, islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import KINDS, PLANS, events, fresh

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.dataset import plan_of
from evenfeed.dataset.face import dataset_of
from evenfeed.rewrite.worker_plan import sharded
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.run import Run, next_pass

Dataset = tf.data.Dataset


def values(dataset):
    return [element.tolist() for element in dataset]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5)
@given(data=st.data())
def test_reading_a_dataset_does_not_change_the_next_pass_over_an_equal_one(kind, data):
    plan = data.draw(PLANS[kind])
    equal = fresh(plan)  # caches in files and snapshots have other names
    before = Run(equal, next_pass).state()
    for _ in range(2):
        iterator = ElementIterator(plan)
        events(iterator, 24)
        iterator.close()
    assert Run(equal, next_pass).state() == before


class Source:
    """A dataset of numbers that counts how often it is read."""

    def __init__(self):
        self.reads = 0

    def __call__(self):
        self.reads += 1
        yield from range(4)

    def dataset(self):
        return Dataset.from_generator(self, output_signature=tf.TensorSpec([], tf.int64))


DERIVED = {
    "the dataset itself": lambda dataset: dataset,
    "mapped": lambda dataset: dataset.map(lambda x: x),
    "batched": lambda dataset: dataset.batch(2),
    "beside another": lambda dataset: Dataset.zip(dataset, Dataset.range(9)),
    "with options": lambda dataset: dataset.with_options(tf.data.Options()),
    "captured by a function": lambda dataset: Dataset.range(1).flat_map(lambda _: dataset),
}
SEPARATE = {
    "built again": lambda dataset, build: build(),
    "a deep copy": lambda dataset, build: copy.deepcopy(dataset),
    "pickled": lambda dataset, build: pickle.loads(pickle.dumps(dataset)),
}


@pytest.mark.parametrize("one", DERIVED)
@pytest.mark.parametrize("two", DERIVED)
def test_a_cache_that_one_derived_dataset_fills_is_read_by_the_others(one, two):
    source = Source()
    cached = source.dataset().cache()
    list(DERIVED[one](cached))
    reads = source.reads
    list(DERIVED[two](cached))
    assert source.reads == reads


NUMBERS = count()


def next_number(_):
    return next(NUMBERS)


def failing(x):
    return 1 // int(x)


@pytest.mark.parametrize("made", SEPARATE)
def test_equal_caches_are_filled_separately(made):
    def build():
        return Dataset.range(2).map(next_number, vectorize=False).cache()

    one = build()
    list(one)
    two = SEPARATE[made](one, build)
    assert values(one) != values(two)
    assert values(two) == values(two)


@pytest.mark.parametrize("derived", [name for name in DERIVED if "captured" not in name])
def test_passes_over_derived_datasets_are_counted_together(derived):
    def orders(read):
        shuffled = Dataset.range(50).shuffle(50, seed=7)
        for dataset in read:
            list(islice(dataset(shuffled), 1))
        return values(shuffled)

    assert orders([DERIVED[derived]]) == orders([DERIVED["the dataset itself"]]) != orders([])


@pytest.mark.parametrize("made", SEPARATE)
def test_passes_over_equal_datasets_are_counted_separately(made):
    def build():
        return Dataset.range(50).shuffle(50, seed=7)

    one = build()
    first = values(one)
    two = SEPARATE[made](one, build)
    assert values(two) == first != values(one)


@pytest.mark.parametrize("made", SEPARATE)
def test_ignored_errors_are_counted_for_one_dataset_and_what_is_derived_from_it(made):
    def build():
        return Dataset.range(3).map(failing, vectorize=False).ignore_errors()

    one = build()
    list(one.map(lambda x: x))
    two = SEPARATE[made](one, build)
    assert (one.ignored_errors().count, one.take(1).ignored_errors().count) == (1, 1)
    assert two.ignored_errors().count == 0


def test_a_worker_caches_its_own_rows_and_leaves_the_cache_of_the_dataset_empty():
    plan = plan_of(Dataset.range(4).map(lambda x: x, vectorize=False).cache().batch(2))
    own = dataset_of(sharded(plan, Share(1, 2)).plan)
    rows = [[part.tolist() for _, part in own] for _ in range(2)]
    assert rows == [[[1], [3]]] * 2
    assert values(dataset_of(plan)) == [[0, 1], [2, 3]]
    assert [part.tolist() for _, part in own] == [[1], [3]]
