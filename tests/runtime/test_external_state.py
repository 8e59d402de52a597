import json
import random
import time
import warnings

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import FailedPreconditionError
from evenfeed.dataset import Dataset, plan_of
from evenfeed.runtime.elements import ElementIterator

POLICY = tf.data.experimental.ExternalStatePolicy
NUMBER = tf.TensorSpec([], tf.int64)
GENERATOR = np.random.default_rng(0)

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*draws random numbers, so", "ignore:.*returns something else each time"
)


def under(dataset, policy):
    options = tf.data.Options()
    options.experimental_external_state_policy = policy
    return dataset.with_options(options)


def state_of(dataset, count=2):
    iterator = iter(dataset)
    for _ in range(count):
        next(iterator)
    return iterator.get_state()


def drawn():
    return Dataset.range(6).map(lambda _: tf.random.uniform([]))


def test_the_error_names_the_line_and_random_map():
    with pytest.raises(FailedPreconditionError) as caught:
        state_of(drawn())
    text = str(caught.value)
    assert "<lambda> draws random numbers in each call, so a restored iterator" in text
    assert "test_external_state.py:" in text
    assert "random_map" in text
    assert "ExternalStatePolicy.WARN or IGNORE" in text


@pytest.mark.parametrize("policy", [None, POLICY.FAIL])
def test_fail_is_the_default(policy):
    dataset = drawn() if policy is None else under(drawn(), policy)
    with pytest.raises(FailedPreconditionError):
        state_of(dataset.batch(2))


def test_warn_warns_at_the_functions_line_and_saves():
    dataset = under(drawn(), POLICY.WARN)
    with pytest.warns(
        UserWarning, match="so a restored iterator would produce different elements"
    ) as said:
        assert json.dumps(state_of(dataset))
    assert said[0].filename.endswith("test_external_state.py")


def test_ignore_says_nothing_and_saves_a_position():
    dataset = under(Dataset.range(6).map(lambda x: (x, tf.random.uniform([]))), POLICY.IGNORE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = state_of(dataset)
    again = iter(dataset)
    again.set_state(state)
    assert [int(x) for x, _ in again] == [2, 3, 4, 5]


def test_a_later_option_rules():
    assert state_of(under(under(drawn(), POLICY.FAIL), POLICY.IGNORE))


def test_what_variables_and_iterators_do_is_named():
    v, source = tf.Variable(0, name="count"), iter(Dataset.range(99))
    with pytest.raises(FailedPreconditionError, match="assigns the variable 'count'"):
        state_of(Dataset.range(6).map(lambda _: v.assign_add(1)))
    with pytest.raises(FailedPreconditionError, match="pulls an iterator"):
        state_of(Dataset.range(6).map(lambda _: next(source)))


@pytest.mark.parametrize("draw", [random.random, np.random.rand, GENERATOR.random])
@pytest.mark.parametrize(
    "build",
    [
        lambda draw: Dataset.range(6).map(lambda x: x * 0.0 + draw()),
        lambda draw: Dataset.range(6).map(lambda x: tf.numpy_function(draw, [], tf.float64)),
        lambda draw: Dataset.from_tensor_slices(["a"] * 6).map(lambda t: len(t) + draw()),
        lambda draw: Dataset.range(6).filter(lambda x: int(x) + draw() < 9),
        lambda draw: Dataset.range(6).flat_map(lambda x: Dataset.from_tensors(draw())),
        lambda draw: Dataset.from_generator(
            lambda: (draw() for _ in range(6)), output_signature=tf.TensorSpec([], tf.float64)
        ),
    ],
)
def test_python_code_that_draws_is_found(build, draw):
    with pytest.raises(FailedPreconditionError, match="draws random numbers"):
        state_of(build(draw))


def test_a_clock_is_not_called_chance():
    dataset = Dataset.range(6).map(lambda x: x * 0.0 + time.perf_counter())
    with pytest.raises(FailedPreconditionError, match="returns something else each time"):
        state_of(dataset)
    assert "random" not in str(dataset.explain())


def tokenized(text):
    return np.array(text.split(), object)


@pytest.mark.parametrize(
    "dataset",
    [
        Dataset.range(6).map(lambda x: x + 1),
        Dataset.from_tensor_slices(["a b"] * 6).map(
            lambda t: tf.numpy_function(tokenized, [t], tf.string)
        ),
        Dataset.from_generator(lambda: range(6), output_signature=NUMBER),
        Dataset.range(6).random_map(lambda key, x: x),
        Dataset.range(6).random_map(lambda rng, x: x + rng.integers(9), generator="numpy"),
        Dataset.range(6).shuffle(6),
        Dataset.range(6).flat_map(lambda _: Dataset.range(3).shuffle(3)),
        Dataset.range(6).map(lambda x: next(iter(Dataset.range(9).skip(x)))),
        Dataset.range(6).rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5]),
    ],
)
def test_the_rest_counts_as_deterministic(dataset):
    assert state_of(dataset, 1)


def test_a_method_beside_a_generator_that_it_does_not_use_is_saved():
    class Decoder:
        def __init__(self):
            self.rng = np.random.default_rng(0)

        def decode(self, text):
            return len(text) if len(text) else 0

        def augmented(self, text):
            return self.decode(text) + self.noise()

        def noise(self):
            return self.rng.random()

    texts = Dataset.from_tensor_slices(["a", "b", "c"])
    assert state_of(texts.map(Decoder().decode))
    with pytest.raises(FailedPreconditionError):
        state_of(texts.map(Decoder().augmented))


def test_what_variables_hold_is_not_part_of_a_state():
    v = tf.Variable(1)
    dataset = Dataset.range(6).map(lambda x: x * v)
    state = state_of(dataset)
    v.assign(10)
    again = iter(dataset)
    again.set_state(state)
    assert [int(x) for x in again] == [20, 30, 40, 50]
    assert str(dataset.explain()).endswith(
        "resume: by position; the values of variables are not part of the state"
    )


def test_below_a_complete_cache_nothing_is_drawn():
    dataset = drawn().cache()
    with pytest.raises(FailedPreconditionError):
        state_of(dataset)
    whole = [float(x) for x in dataset]
    again = iter(dataset)
    again.set_state(state_of(dataset))
    assert [float(x) for x in again] == whole[2:]


def test_a_state_of_a_cache_that_is_not_there_is_refused():
    dataset = drawn().cache()
    list(dataset)
    with pytest.raises(FailedPreconditionError, match="draws random numbers"):
        iter(drawn().cache()).set_state(state_of(dataset))


@pytest.mark.parametrize(
    "keep", [lambda d, path: d.cache(str(path / "kept")), lambda d, path: d.snapshot(path)]
)
def test_a_cache_in_files_and_a_snapshot_hold_what_was_drawn(keep, tmp_path):
    dataset = keep(drawn(), tmp_path)
    with pytest.raises(FailedPreconditionError):
        state_of(dataset)
    whole = [float(x) for x in dataset]
    state = state_of(dataset)
    again = iter(dataset)
    again.set_state(state)
    assert [float(x) for x in again] == whole[2:]


def test_a_distributed_iterator_heeds_the_policy():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = drawn().batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    next(iterator)
    with pytest.raises(FailedPreconditionError, match="draws random numbers"):
        iterator.get_state()
    ignoring = iter(strategy.experimental_distribute_dataset(under(dataset, POLICY.IGNORE)))
    next(ignoring)
    assert ignoring.get_state()
    own = strategy.distribute_datasets_from_function(lambda _: dataset)
    iterator = iter(own)
    next(iterator)
    with pytest.raises(FailedPreconditionError, match="draws random numbers"):
        iterator.get_state()


def test_the_engine_itself_may_ask_for_a_position():
    iterator = ElementIterator(plan_of(drawn()))
    next(iterator)
    assert "at" in iterator.position()


def test_explain_tells_how_it_resumes():
    def last(dataset):
        return str(dataset.explain()).splitlines()[-1]

    refused = last(drawn().batch(2))
    assert refused.startswith(
        "resume: get_state raises, because the elements would differ: <lambda> draws"
    )
    ignored = last(under(drawn(), POLICY.IGNORE))
    assert ignored.startswith("resume: by position, but the elements will differ: <lambda> draws")
    assert last(Dataset.range(6).batch(2)) == "resume: by position, at once"
    assert last(Dataset.range(6).batch(2).prefetch(1)) == "resume: by position"
