"""The rows of each replica at each step, compared with TensorFlow's rules in plain Python."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feeding import model
from tests.feeding.distribution import numbers

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import plan_of
from evenfeed.feeding.flowing_batches import FlowingBatches
from evenfeed.feeding.host_steps import SplitSteps, cut
from evenfeed.feeding.padding import PadSteps, padded_rows
from evenfeed.feeding.piece_steps import TakePieces

Dataset = tf.data.Dataset

rows = st.integers(0, 30)
sizes = st.integers(1, 12)
replicas = st.sampled_from([1, 2, 3, 4, 8])
epochs = st.integers(1, 3)


def all_steps(steps, limit=200):
    """Return the first columns of all steps, for each replica."""
    found = []
    while len(found) < limit:
        try:
            column = steps.read()[0]
        except StopIteration:
            return found
        found.append(column)
    return found


def lists(column, count):
    pieces = column if isinstance(column, list) else cut(column, count)
    return [piece.tolist() for piece in pieces]


def cut_steps(dataset, count):
    return SplitSteps(plan_of(dataset), Share(replicas=count))


def flowing_steps(dataset, size, count):
    return FlowingBatches(plan_of(dataset), model.sizes(size, count), count)


def padded_steps(dataset, count):
    plan = plan_of(dataset)
    return PadSteps(SplitSteps(plan, Share(replicas=count)), count, padded_rows(plan, count))


@given(rows, sizes, replicas, epochs)
def test_batches_are_cut_by_ceiling(count, size, devices, times):
    dataset = numbers(range(count)).batch(size).repeat(times)
    found = all_steps(cut_steps(dataset, devices))
    expected = model.legacy(model.batched(count, size) * times, devices)
    assert [lists(column, devices) for column in found] == expected


@given(rows, sizes, replicas, epochs)
def test_rows_flow_on_in_nominal_sizes(count, size, devices, times):
    dataset = numbers(range(count)).batch(size).repeat(times)
    found = all_steps(flowing_steps(dataset, size, devices))
    expected = model.flowing(model.batched(count, size) * times, size, devices)
    assert [[piece.tolist() for piece in column] for column in found] == expected


def read_and_peeked(steps, orders):
    """Return the rows of all steps, of which some are read by themselves and some several at once."""
    found = []
    for most in (*orders, *[0] * 200):
        try:
            columns = steps.peek(most) if most else None
            if columns is None:
                column = steps.read()[0]
                found.append(
                    np.concatenate(column).tolist() if isinstance(column, list) else column.tolist()
                )
            else:
                found += columns[0].tolist()
                steps.advance(len(columns[0]))
        except StopIteration:
            return found
    return found


@given(
    rows, sizes, st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.lists(st.integers(0, 5))
)
def test_steps_that_are_read_at_once_are_those_that_are_read_one_by_one(
    count, size, devices, workers, orders
):
    share = Share(workers=workers, replicas=devices)
    plan = plan_of(numbers(range(count)).batch(size * share.everyone).repeat(2))

    def flowing():
        return FlowingBatches(plan, share.sizes(size * share.everyone), devices)

    for make in (flowing, lambda: SplitSteps(plan, share)):
        expected, steps = read_and_peeked(make(), ()), make()
        assert read_and_peeked(steps, orders) == expected


@given(rows, sizes, replicas)
def test_an_element_for_each_replica_is_taken_in_turn(count, size, devices):
    plan = plan_of(numbers(range(count)).batch(size))
    found = all_steps(TakePieces([plan], devices))
    batches = model.batched(count, size)
    batches += [[]] * (-len(batches) % devices)
    expected = [batches[i : i + devices] for i in range(0, len(batches), devices)]
    assert [
        lists(column, devices) if devices > 1 else [column.tolist()] for column in found
    ] == expected


@given(rows, sizes, replicas)
def test_short_batches_are_filled_and_say_which_rows_are_theirs(count, size, devices):
    steps = padded_steps(numbers(range(1, count + 1)).batch(size), devices)
    each = -(-size // devices)
    kept = []
    while True:
        try:
            values, valid = steps.read()
        except StopIteration:
            break
        assert values.shape == valid.shape == (devices * each,)
        assert not values[~valid].any()
        kept += values[valid].tolist()
    assert kept == list(range(1, count + 1))


def every_kind(devices):
    data = numbers(range(23)).map(lambda x: x * 3).batch(5).repeat(2)
    yield lambda: cut_steps(data, devices)
    yield lambda: flowing_steps(data, 5, devices)
    yield lambda: TakePieces([plan_of(data)], devices)
    yield lambda: padded_steps(numbers(range(23)).batch(5).repeat(2), devices)


def values_of(steps):
    return [np.concatenate([np.ravel(p) for p in column]).tolist() for column in all_steps(steps)]


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("devices", [2, 3])
def test_a_position_is_exact_at_every_step(kind, devices):
    make = list(every_kind(devices))[kind]
    whole, steps = values_of(make()), make()
    for taken in range(len(whole)):
        fresh = make()
        fresh.restore(json.loads(json.dumps(steps.state())))
        assert values_of(fresh) == whole[taken:]
        steps.read()


@given(st.integers(0, 6), replicas, replicas, st.booleans())
def test_a_position_is_taken_up_on_another_number_of_replicas(taken, before, after, flows):
    def make(count):
        dataset = numbers(range(17)).batch(6).repeat(2)
        return flowing_steps(dataset, 6, count) if flows else cut_steps(dataset, count)

    steps = make(before)
    for _ in range(min(taken, 5)):
        steps.read()
    other = make(after)
    other.restore(steps.state())
    left = [row for column in all_steps(steps) for piece in lists(column, before) for row in piece]
    seen = [row for column in all_steps(other) for piece in lists(column, after) for row in piece]
    assert seen == left


def test_a_position_inside_of_a_batch_is_taken_up_where_batches_are_cut_by_themselves():
    dataset = numbers(range(7)).batch(4).repeat()
    flowing = flowing_steps(dataset, 4, 2)
    for _ in range(2):  # 0-3, then 4 5 6 and the first row of the next pass
        flowing.read()
    cutting = cut_steps(dataset, 2)
    cutting.restore(flowing.state())
    assert [lists(cutting.read()[0], 2) for _ in range(2)] == [[[1, 2], [3]], [[4, 5], [6]]]


def test_positions_of_another_number_of_datasets_are_refused():
    plans = [plan_of(Dataset.range(4).batch(2)) for _ in range(2)]
    state = TakePieces(plans, 2).state()
    with pytest.raises(
        InvalidArgumentError, match="positions in 2 datasets, but this iterator reads 1"
    ):
        TakePieces(plans[:1], 2).restore(state)


def test_a_replica_without_rows_gets_the_lengths_of_its_neighbours():
    ragged = numbers([1, 2, 3]).map(np.arange, vectorize=False).padded_batch(2)
    columns = all_steps(flowing_steps(ragged, 2, 2))
    assert [[piece.shape for piece in column] for column in columns] == [
        [(1, 2), (1, 2)],
        [(1, 3), (0, 3)],
    ]


def test_rows_of_unlike_batches_are_not_joined():
    ragged = numbers([1, 2, 3, 4]).map(np.arange, vectorize=False).padded_batch(3)
    steps = flowing_steps(ragged.repeat(2), 3, 1)
    steps.read()
    with pytest.raises(InvalidArgumentError, match=r"their shapes differ: \[\(4,\), \(3,\)\]"):
        steps.read()


def test_parts_of_unlike_lengths_do_not_flow():
    pair = Dataset.from_tensors((np.zeros(4), np.zeros(3))).repeat(2)
    with pytest.raises(
        InvalidArgumentError, match=r"the same number of rows to be split, but have \[3, 4\]"
    ):
        flowing_steps(pair, 4, 2).read()


def test_text_and_none_flow_too():
    data = Dataset.from_tensor_slices((list("abcde"), None)).batch(3)
    found = []
    steps = flowing_steps(data, 3, 2)
    for _ in range(2):
        text, nothing = steps.read()
        found.append([[x.decode() for x in piece] for piece in text])
        assert nothing is None
    assert found == [[["a", "b"], ["c"]], [["d", "e"], []]]


def test_a_step_that_cannot_say_that_a_replica_has_no_rows_is_dropped():
    scalars = plan_of(numbers(range(5)))
    assert [[int(x) for x in column] for column in all_steps(TakePieces([scalars], 2))] == [
        [0, 1],
        [2, 3],
    ]


def test_a_scalar_beside_rows_is_zero_for_a_replica_without_them():
    data = Dataset.from_tensors((np.int32([1, 2]), 7, "a"))
    generated = Dataset.from_generator(
        lambda: iter([([1, 2], 7, "a")] * 3),
        output_signature=(
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.string),
        ),
    )
    assert len(all_steps(TakePieces([plan_of(data)], 2))) == 0
    steps = TakePieces([plan_of(generated)], 2)
    steps.read()
    ids, number, text = steps.read()
    assert [piece.tolist() for piece in ids] == [[1, 2], []]
    assert ([int(x) for x in number], [x.item() for x in text]) == ([7, 0], [b"a", b""])
