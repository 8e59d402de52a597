"""Reading a plan changes none of its nodes, functions and files."""

import warnings
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.every_format import FORMATS, written
from tests.plans import KINDS, PLANS, events, not_addressed, ways
from tests.plans.snapshots import snapshot

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import EvenfeedError, FailedPreconditionError
from evenfeed.dataset import plan_of
from evenfeed.rewrite.worker_plan import sharded
from evenfeed.runtime.elements import ElementIterator

Dataset = tf.data.Dataset
MANY = 24


def read(plan, many=MANY):
    iterator = ElementIterator(plan)
    events(iterator, many)
    iterator.close()


def read_twice(plan):
    read(plan)
    read(plan)


def read_on_two_workers(plan):
    for worker in range(2):
        try:
            own = sharded(plan, Share(worker, 2)).plan
        except EvenfeedError:  # it cannot be sharded
            continue
        read(own)


def read_and_resume(plan):
    one = ElementIterator(plan)
    events(one, 2)
    position = one.position()
    one.close()  # a second iterator may not write the same cache
    two = ElementIterator(plan)
    with suppress(FailedPreconditionError):  # a function has side effects
        two.set_state(position)
    events(two, MANY)
    two.close()


READINGS = {
    "a whole pass": read,
    "a part of a pass": lambda plan: read(plan, 2),
    "two passes": read_twice,
    "a resumed pass": read_and_resume,
    "two workers": read_on_two_workers,
}


def assert_unchanged(plan, reading):
    _ = plan.element_spec  # may call functions with the first elements
    before = snapshot(plan)
    reading(plan)
    after = snapshot(plan)
    assert {path: after.get(path) for path in before} == before
    assert after.keys() == before.keys()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(data=st.data(), way=ways, reading=st.sampled_from(list(READINGS)))
def test_running_changes_no_node(kind, data, way, reading):
    plan = data.draw(PLANS[kind])
    with not_addressed(way):
        assert_unchanged(plan, READINGS[reading])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("reading", ["two passes", "two workers"])
def test_reading_changes_no_file_of_a_plan(name, reading, tmp_path):
    plan = plan_of(FORMATS[name].read(written(name, tmp_path)).shuffle(4).batch(2))
    assert_unchanged(plan, READINGS[reading])


def failing(x):
    if x == 2:
        raise ValueError("two")
    return x


def generated():
    yield 1
    yield 2
    raise ValueError("three")


def adding(variable):
    return lambda x: variable.assign_add(tf.cast(x, tf.int32))


# Functions and generators that fail, have side effects, open datasets, or need values.
DATASETS = {
    "a function that fails": lambda _: Dataset.range(5).map(failing, vectorize=False),
    "ignored errors": lambda _: Dataset.range(5).map(failing, vectorize=False).ignore_errors(),
    "several threads": lambda _: Dataset.range(5).map(failing, 2, vectorize=False),
    "a generator that fails": lambda _: Dataset.from_generator(
        generated, output_signature=tf.TensorSpec([], tf.int64)
    ),
    "a variable": lambda _: Dataset.range(5).map(adding(tf.Variable(0))),
    "values": lambda _: Dataset.range(5).map(lambda x: [float(y) for y in range(int(x) * 0 + 2)]),
    "groups": lambda _: Dataset.range(9).group_by_window(
        lambda x: x % 2, lambda _, group: group.shuffle(3).batch(2), window_size=3
    ),
    "a captured cache": lambda _: _captured(Dataset.range(3).shuffle(3).cache()),
    "a snapshot": lambda path: Dataset.range(5).shuffle(3).snapshot(str(path / "snapshot")),
    "a cache in files": lambda path: Dataset.range(5).cache(str(path / "cache")).repeat(2),
    "elements that are datasets": lambda _: Dataset.range(5).window(2).cache().repeat(2),
    "draws": lambda _: Dataset.range(5).random_map(lambda _, x: x),
    "rejections": lambda _: Dataset.range(9).rejection_resample(lambda x: x % 2, [0.5, 0.5]),
}


def _captured(dataset):
    return Dataset.range(3).flat_map(lambda _: dataset)


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("reading", READINGS)
def test_calling_functions_changes_no_node(name, reading, tmp_path):
    with warnings.catch_warnings(action="ignore"):
        assert_unchanged(plan_of(DATASETS[name](tmp_path)), READINGS[reading])
