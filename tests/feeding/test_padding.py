"""pad_partial_batches: the padding, the `valid` mask, and a compiled step's view of them."""

import json

import jax
import numpy as np
import pytest
from tests.feeding.distribution import distributed, numbers, parts_of, strategy_of
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import plan_of
from evenfeed.feeding.host_steps import SplitSteps
from evenfeed.feeding.padding import PadSteps
from evenfeed.replicas.values import PerReplicaSpec

Dataset = tf.data.Dataset


def padded(dataset, count):
    return distributed(dataset, count, pad_partial_batches=True)


def test_the_spec_says_the_one_shape_and_the_marks():
    dataset = padded(Dataset.from_tensor_slices(np.zeros((9, 3), np.float32)).batch(4), 2)
    part, mark = tf.TensorSpec([2, 3], tf.float32), tf.TensorSpec([2], tf.bool)
    assert dataset.element_spec == (PerReplicaSpec(part, part), PerReplicaSpec(mark, mark))
    for step in dataset:
        assert tuple(map(tf.type_spec_from_value, step)) == dataset.element_spec
    one = padded(numbers(range(3)).batch(2), 1)
    assert one.element_spec == (tf.TensorSpec([2], tf.int32), tf.TensorSpec([2], tf.bool))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_every_row_comes_once_and_is_marked(count):
    rows, steps = [], 0
    for x, valid in padded(numbers(range(1, 24)).batch(5), count):
        values, marks = np.ravel(parts_of(x)), np.ravel(parts_of(valid))
        assert len(values) == len(marks) == count * -(-5 // count)
        assert not values[~marks].any()
        rows += values[marks].tolist()
        steps += 1
    assert (rows, steps) == (list(range(1, 24)), 5)


def test_a_compiled_step_is_traced_once():
    strategy = strategy_of(4)

    @tf.function
    def step(x, valid):
        return strategy.run(lambda x, valid: jax.numpy.sum(x * valid), args=(x, valid))

    options = tf.distribute.InputOptions(pad_partial_batches=True)
    dataset = strategy.experimental_distribute_dataset(numbers(range(11)).batch(4), options)
    totals = [strategy.reduce("SUM", step(*item), axis=None) for item in dataset]
    assert [int(total) for total in totals] == [0 + 1 + 2 + 3, 4 + 5 + 6 + 7, 8 + 9 + 10]
    assert step.experimental_get_tracing_count() == 1


def test_text_none_and_small_floats_are_filled():
    columns = {"s": list("abc"), "n": None, "f": np.ones((3, 2), dtypes.bfloat16)}
    (step,) = padded(Dataset.from_tensor_slices(columns).batch(4), 2)
    element, valid = step
    assert parts_of(element["s"]) == [[b"a", b"b"], [b"c", b""]]
    assert element["n"].values == (None, None)
    assert element["f"].array.dtype == dtypes.bfloat16
    assert element["f"].array[:, 0].tolist() == [1, 1, 1, 0]
    assert parts_of(valid) == [[True, True], [True, False]]


def test_steps_are_one_array_to_the_end():
    arrays = list(padded(numbers(range(5)).batch(4), 2).as_array_iterator())
    assert [(x.tolist(), valid.tolist()) for x, valid in arrays] == [
        ([0, 1, 2, 3], [True] * 4),
        ([4, 0, 0, 0], [True, False, False, False]),
    ]


@pytest.mark.parametrize("before", [1, 2, 3, 4, 8])
def test_a_position_is_taken_up_on_other_replicas(before):
    data = numbers(range(1, 20)).batch(4)
    iterator = iter(padded(data, before))
    next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    for after in (1, 2, 3, 4, 8):
        other = iter(padded(data, after))
        other.set_state(state)
        steps = [(np.ravel(parts_of(x)), np.ravel(parts_of(v))) for x, v in other]
        assert np.concatenate([x[v] for x, v in steps]).tolist() == list(range(5, 20))


def test_the_size_of_a_batch_must_be_known():
    strategy, options = strategy_of(2), tf.distribute.InputOptions(pad_partial_batches=True)
    dataset = numbers(range(5)).batch(4).map(lambda x: x)
    with error_saying(
        InvalidArgumentError,
        "pad_partial_batches needs a known batch size, but the dataset's batch size is unknown.",
        fix="make batch(size) the last transformation, …",
    ):
        strategy.experimental_distribute_dataset(dataset, options)


def test_a_batch_with_more_rows_than_were_told_is_refused():
    steps = PadSteps(SplitSteps(plan_of(numbers(range(6)).batch(3)), Share(replicas=2)), 2, 1)
    with pytest.raises(
        InvalidArgumentError, match="A replica gets 2 rows, but the batch size allows at most 1"
    ):
        steps.read()


def test_a_function_makes_batches_of_its_own():
    options = tf.distribute.InputOptions(pad_partial_batches=True)
    with pytest.raises(NotImplementedError, match="pad_partial_batches pads global batches"):
        strategy_of(2).distribute_datasets_from_function(lambda _: numbers([1]).batch(1), options)
