import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.dataset import Dataset, plan_of
from evenfeed.runtime import reading_pace
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.operator import Ended
from evenfeed.runtime.reading_pace import Pace


@pytest.fixture(autouse=True)
def _a_busy_machine_does_not_count(monkeypatch):
    monkeypatch.setattr(reading_pace, "perf_counter", lambda: 0.0)


def asked_for(dataset, count=12):
    """Return how many elements an iterator asks for at a time, after `count` elements."""
    iterator = ElementIterator(plan_of(dataset))
    for _ in range(count):
        next(iterator)
    return iterator._pace.ask


def test_nothing_that_can_be_seen_is_read_ahead():
    v = tf.Variable(0)
    assert asked_for(Dataset.range(99).map(lambda _: v.assign_add(1))) == 1
    assert asked_for(Dataset.range(99).map(lambda x: x + int(v.numpy()))) == 1
    assert asked_for(Dataset.range(99)) == 16


def test_variables_that_stay_as_they_are_cost_nothing():
    v = tf.Variable(2.0)
    assert asked_for(Dataset.range(99).map(lambda x: x * v)) == 16
    assert asked_for(Dataset.range(99).map(lambda x: jnp.sin(x * v.value())).batch(2)) == 16


@pytest.mark.parametrize("every", [1, 2, 3, 5, 17])
@pytest.mark.parametrize(
    "build",
    [
        lambda d: d,
        lambda d: d.batch(3).map(lambda x: x * 2),
        lambda d: d.skip(2).repeat(2).enumerate().map(lambda i, x: i + x),
        lambda d: Dataset.zip(d, d).map(lambda x, y: x * y),
    ],
)
def test_a_change_shows_in_the_next_element_however_far_was_read(every, build):
    v = tf.Variable(0, dtype=tf.int32)

    def read(vectorize):
        found = []
        v.assign(0)
        mapped = Dataset.range(40, output_type=tf.int32).map(lambda x: x + v, vectorize=vectorize)
        for number, x in enumerate(build(mapped)):
            found.append(np.asarray(x).tolist())
            if number % every == 0:
                v.assign_add(100)
        return found

    assert read(None) == read(vectorize=False)


def test_a_state_before_a_change_goes_on_with_the_change():
    v = tf.Variable(0)
    dataset = Dataset.range(40).map(lambda x: x + v)
    iterator = iter(dataset)
    for _ in range(5):
        next(iterator)
    state = iterator.get_state()
    v.assign(100)
    again = iter(dataset)
    again.set_state(state)
    rest = [int(x) for x in iterator]
    assert rest == [int(x) for x in again] == list(range(105, 140))


def test_who_assigns_often_is_read_one_by_one():
    v = tf.Variable(0)
    pace, operator = Pace(plan_of(Dataset.range(9).map(lambda x: x + v)), []), Ended(None)
    pace.begin()
    pace.learn(Block((np.zeros(1),), 1), operator)
    assert (pace.ask, pace.is_stale()) == (2, False)
    v.assign_add(1)
    assert pace.is_stale()
    pace.took_back()
    asked = []
    for _ in range(4):
        asked.append(pace.ask)
        pace.learn(Block((np.zeros(1),), 1), operator)
    assert asked == [1, 1, 2, 4]


def test_what_cannot_be_read_again_unseen_is_read_one_by_one():
    v = tf.Variable(1)
    numbers = Dataset.range(99)
    for dataset in (
        numbers.filter(lambda x: x >= v),
        numbers.map(lambda x: x + v).filter(lambda x: x > 0),
        numbers.map(lambda x: x + v).shuffle(5),
        numbers.map(lambda x: x + v).map(lambda x: int(x)),  # noqa: PLW0108 - not traced
        Dataset.from_generator(lambda: range(99), output_signature=tf.TensorSpec([], tf.int64)).map(
            lambda x: x + v
        ),
    ):
        assert asked_for(dataset) == 1


def test_below_a_complete_cache_nothing_is_called():
    v = tf.Variable(0)
    dataset = Dataset.range(20).map(lambda _: v.assign_add(1)).cache()
    assert [int(x) for x in dataset] == list(range(1, 21))
    assert asked_for(dataset) == 16


def generated(calls):
    def numbers():
        for x in range(20):
            calls.append(x)
            yield x

    return Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64))


REPEATED = {
    "elements": lambda cached: cached.repeat(3),
    "shuffle": lambda cached: cached.shuffle(5).repeat(3),
    "traced map": lambda cached: cached.map(lambda x: x + 1).repeat(3),
    "filter": lambda cached: cached.filter(lambda x: x % 2 == 0).repeat(6),
    "batch": lambda cached: cached.batch(1).repeat(3),
    "padded_batch": lambda cached: cached.padded_batch(1).repeat(3),
    "batch and unbatch": lambda cached: cached.batch(2).unbatch().repeat(3),
    "enumerate and zip": lambda cached: (
        Dataset.zip(cached, Dataset.range(99)).enumerate().repeat(3)
    ),
    "skip, take, shard": lambda cached: cached.skip(0).take(25).shard(1, 0).repeat(3),
    "assert_cardinality": lambda cached: cached.apply(
        tf.data.experimental.assert_cardinality(20)
    ).repeat(3),
}


@pytest.mark.parametrize("repeated", REPEATED.values(), ids=list(REPEATED))
def test_later_rounds_of_a_cache_are_read_many_elements_at_a_time(repeated):
    calls = []
    dataset = repeated(generated(calls).cache())
    iterator = ElementIterator(plan_of(dataset))
    assert iterator._pace.ask == 1
    for _ in range(45):
        next(iterator)
    assert len(calls) == 20
    assert iterator._pace.ask >= 8


def test_a_function_above_a_cache_is_still_called_for_one_element_at_a_time():
    calls = []
    seen = []

    def noted(x):
        seen.append(int(x))
        return x

    dataset = generated(calls).cache().map(noted, vectorize=False).repeat(3)
    assert asked_for(dataset, 45) == 1
    assert len(seen) <= 46


def test_a_variable_that_changes_all_the_time_does_not_hold_elements_back(monkeypatch):
    v = tf.Variable(0)
    iterator = iter(Dataset.range(5).map(lambda x: x + v))
    monkeypatch.setattr(Pace, "is_stale", lambda _: True)
    assert [int(x) for x in iterator] == list(range(5))
