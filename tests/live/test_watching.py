import gc
import json

import pytest

import evenfeed as tf
from evenfeed.core.errors import FailedPreconditionError
from evenfeed.live.watching import watching


@pytest.fixture(autouse=True)
def _measuring():
    gc.collect()
    watching.forget()
    tf.experimental.enable_stats()
    yield
    tf.experimental.enable_stats(False)
    watching.forget()


def own(iterators):
    return [(one.name.split(" at ")[0], one.is_alive) for one in iterators]


def test_measured_iterators_are_listed_as_long_as_they_exist_and_the_last_figures_afterwards():
    iterator = iter(tf.data.Dataset.range(6).batch(2))
    list(iterator)
    assert own(watching.all())[-1] == ("batch(2)", True)
    del iterator
    gc.collect()
    assert own(watching.all()) == [("batch(2)", False)]
    assert watching.all()[0].stats.elements == 3


def test_the_next_pass_takes_the_place_of_the_last():
    dataset = tf.data.Dataset.range(6).batch(2)
    for _ in range(3):
        list(dataset)
    gc.collect()
    assert own(watching.all()) == [("batch(2)", False)]
    iterator = iter(dataset)
    assert own(watching.all()) == [("batch(2)", True)]
    del iterator


def test_figures_are_json():
    iterator = iter(tf.data.Dataset.range(6).batch(2))
    list(iterator)
    told = json.loads(json.dumps(iterator.stats().as_dict()))
    assert [stage["elements"] for stage in told["stages"]] == [6, 3]


def test_an_iterator_that_is_not_measured_says_how_to_measure_it():
    tf.experimental.enable_stats(False)
    iterator = iter(tf.data.Dataset.range(6))
    with pytest.raises(FailedPreconditionError, match=r"not measured(.|\n)*enable_stats\(\)"):
        iterator.stats()
    with pytest.raises(FailedPreconditionError, match="not measured"):
        iterator.explain()
    assert iterator._operator.__class__.__module__ == "evenfeed.runtime.positions.rows"
