"""A state that was changed is refused: it would end the data early, or go on elsewhere."""

import json

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset


@pytest.fixture
def dataset():
    return Dataset.range(9).cache()


@pytest.fixture
def state(dataset):
    iterator = iter(dataset)
    for _ in range(3):
        next(iterator)
    return json.loads(json.dumps(iterator.get_state()))


@pytest.mark.parametrize(
    "change", [{"rows": 10**7}, {"at": None}, {"at": [-5, 0]}, {"run": []}, {"sum": 1}]
)
def test_a_changed_state_is_refused_and_the_position_stays(dataset, state, change):
    iterator = iter(dataset)
    next(iterator)
    with pytest.raises(tf.errors.DataLossError, match="changed after get_state"):
        iterator.set_state(state | change)
    assert int(next(iterator)) == 1


@pytest.mark.parametrize("missing", ["run", "at", "rows"])
def test_a_state_without_a_part_is_refused(dataset, state, missing):
    del state[missing]
    with pytest.raises(tf.errors.DataLossError, match="pass the state as it was"):
        iter(dataset).set_state(state)


def test_a_state_without_its_plan_belongs_to_another_dataset(dataset, state):
    del state["plan"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="a different dataset"):
        iter(dataset).set_state(state)


def test_a_state_without_checksum_is_one_of_an_earlier_version(dataset, state):
    del state["sum"]
    iterator = iter(dataset)
    iterator.set_state(state)
    assert [int(x) for x in iterator] == [3, 4, 5, 6, 7, 8]
