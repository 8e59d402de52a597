"""States of distributed iterators: exact at every step, on any number of replicas, in spite of prefetching."""

import json

import numpy as np
import pytest
from tests.feeding.distribution import distributed, numbers, parts_of, strategy_of, with_policy
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

Dataset = tf.data.Dataset
COUNTS = [1, 2, 3, 4, 8]


def picky(x):
    if x in (6, 17):
        raise KeyError(int(x))
    return x


def plans():
    data = numbers(range(26))
    text = Dataset.from_tensor_slices([str(x) for x in range(26)])
    yield "batches", data.batch(4)
    yield "shuffled", data.shuffle(26, seed=3).batch(4).repeat(2)
    yield "shuffled by a buffer", data.filter(lambda x: x != 5).shuffle(6, seed=3).batch(4)
    yield "mapped", data.map(lambda x: x * 2).batch(4).prefetch(2)
    yield "flowing", with_policy(data.batch(4).repeat(2), "OFF")
    yield "text", text.batch(4)
    yield "failing", data.map(picky, vectorize=False).batch(1)
    yield (
        "generated",
        Dataset.from_generator(
            lambda: iter(range(26)), output_signature=tf.TensorSpec([], tf.int32)
        ).batch(4),
    )


PLANS = dict(plans())


def outcomes(iterator, limit=60):
    found = []
    while len(found) < limit:
        try:
            found.append(parts_of(next(iterator)))
        except StopIteration:
            break
        except KeyError as error:
            found.append(error.args)
    return found


def rows_of(found):
    return [row for step in found for part in step for row in np.ravel(part).tolist()]


def copied(state):
    return json.loads(json.dumps(state))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_a_state_is_exact_at_every_step(name, depth):
    def make():
        return iter(distributed(PLANS[name], 2, experimental_per_replica_buffer_size=depth))

    iterator = make()
    states, whole = [copied(iterator.get_state())], []
    while True:
        found = outcomes(iterator, 1)
        if not found:
            break
        whole += found
        states.append(copied(iterator.get_state()))
    assert len(states) > 6
    for taken, state in enumerate(states):
        other = make()
        other.set_state(state)
        assert outcomes(other) == whole[taken:], taken
    iterator.set_state(states[2])
    assert outcomes(iterator) == whole[2:]


@pytest.mark.parametrize("name", ["batches", "shuffled", "mapped", "flowing", "text"])
@pytest.mark.parametrize("before", COUNTS)
def test_a_state_is_taken_up_on_another_number_of_replicas(name, before):
    iterator = iter(distributed(PLANS[name], before))
    outcomes(iterator, 3)
    state = copied(iterator.get_state())
    left = rows_of(outcomes(iterator))
    for after in COUNTS:
        other = iter(distributed(PLANS[name], after))
        other.set_state(state)
        assert rows_of(outcomes(other)) == left


@pytest.mark.parametrize("mode", list(tf.distribute.InputReplicationMode))
def test_a_state_of_what_a_function_makes_is_exact(mode):
    options = tf.distribute.InputOptions(experimental_replication_mode=mode)
    dataset = strategy_of(2).distribute_datasets_from_function(
        lambda context: numbers(range(context.input_pipeline_id, 15)).batch(2), options
    )
    whole = outcomes(iter(dataset))
    iterator = iter(dataset)
    for taken in range(len(whole) + 1):
        other = iter(dataset)
        other.set_state(copied(iterator.get_state()))
        assert outcomes(other) == whole[taken:]
        outcomes(iterator, 1)


def test_a_state_of_a_function_goes_to_more_replicas_if_its_dataset_is_the_same():
    def made(count):
        return iter(
            strategy_of(count).distribute_datasets_from_function(
                lambda _: numbers(range(12)).batch(1)
            )
        )

    iterator = made(2)
    outcomes(iterator, 2)
    other = made(4)
    other.set_state(iterator.get_state())
    assert outcomes(other) == [[[4], [5], [6], [7]], [[8], [9], [10], [11]]]


@pytest.mark.parametrize("state", [None, 3, [], {}, {"version": 1}, "text"])
def test_what_is_no_state_is_refused(state):
    iterator = iter(distributed(PLANS["batches"], 2))
    with error_saying(
        InvalidArgumentError,
        f"{state!r} is not a state of a distributed iterator.",
        fix="pass the result of get_state(); if it was saved as JSON, json.loads(text).",
    ):
        iterator.set_state(state)
    assert parts_of(next(iterator)) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (None, "is not a state of a distributed iterator"),
        (3, "is not a state of a distributed iterator"),
        ([], "positions in 0 datasets"),
        ([3], "must be an iterator state, but got 3"),
        ([{}], "must be an iterator state, but got {}"),
        ([{"version": 2}], "an iterator over a different dataset"),
        ([1, 2], "positions in 2 datasets"),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(at, words):
    iterator = iter(distributed(PLANS["batches"], 2))
    next(iterator)
    with pytest.raises(InvalidArgumentError, match=words):
        iterator.set_state({"version": 1, "at": at, "rows": 0})
    assert parts_of(next(iterator)) == [[4, 5], [6, 7]]


def test_a_state_of_another_version_or_dataset_is_refused():
    iterator = iter(distributed(PLANS["batches"], 2))
    state = iterator.get_state()
    with pytest.raises(InvalidArgumentError, match="has version 3, but this evenfeed reads 1 to 2"):
        iterator.set_state({**state, "version": 3})
    with pytest.raises(InvalidArgumentError, match="over a different dataset"):
        iter(distributed(PLANS["mapped"], 2)).set_state(state)


def test_a_state_of_each_replicas_dataset_needs_as_many_replicas():
    mode = tf.distribute.InputReplicationMode.PER_REPLICA
    options = tf.distribute.InputOptions(experimental_replication_mode=mode)

    def made(count):
        return iter(
            strategy_of(count).distribute_datasets_from_function(
                lambda _: PLANS["batches"], options
            )
        )

    iterator = made(3)
    with error_saying(
        InvalidArgumentError,
        "The state has positions in 2 datasets, but this iterator reads 3.",
        fix="with InputReplicationMode.PER_REPLICA, use the same number of replicas as before.",
    ):
        iterator.set_state(made(2).get_state())
