"""Stop above a map whose results may overtake each other, resume elsewhere: each element comes exactly once."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import STEPS, assert_all_equal, events, fresh, read_with_states, through_json

import evenfeed as tf
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.batching import PaddedBatch
from evenfeed.plan.buffering import Prefetch
from evenfeed.plan.elementwise import Map
from evenfeed.plan.grouping import Batch
from evenfeed.plan.options import WithOptions
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.operators.parallel import unordered_map

ROWS = 25
MANY = 12
NUMBER = tf.TensorSpec([], tf.int64)
SAVES_AT_DELIVERY = {Batch, PaddedBatch, Prefetch, WithOptions}


def at_its_own_speed(x):
    time.sleep(0.0005 * (int(x) * 7 % 5))
    return x


def unordered(dataset, calls=4, **how):
    how = {"vectorize": False, "output_signature": NUMBER, "deterministic": False} | how
    return dataset.map(at_its_own_speed, calls, **how)


def set_in_options(dataset):
    options = tf.data.Options()
    options.deterministic = False
    return dataset.with_options(options)


def plans_above_a_map(kind):
    return STEPS[kind](st.just(plan_of(unordered(Dataset.range(ROWS)))))


@pytest.mark.parametrize("kind", STEPS, ids=lambda kind: kind.__name__)
def test_every_step_that_may_read_again_is_given_the_same_order(kind):
    @settings(max_examples=2, database=None, deadline=None)
    @given(plans_above_a_map(kind))
    def check(plan):
        if unordered_map(plan) is not None:
            assert kind is Map or kind in SAVES_AT_DELIVERY
            return
        plan = fresh(plan)
        found, states = read_with_states(ElementIterator(plan, unordered=True), MANY)
        for passed in {0, len(found) // 3, len(found) // 2, len(found)}:
            iterator = ElementIterator(fresh(plan), unordered=True)
            iterator.set_state(states[passed])
            assert_all_equal(events(iterator, len(found) - passed), found[passed:])

    check()


UNORDERED = {
    "map": lambda rows: rows,
    "prefetch": lambda rows: rows.prefetch(7),
    "options": set_in_options,
    "batch": lambda rows: rows.batch(3),
    "full batches": lambda rows: rows.batch(3, drop_remainder=True),
    "padded_batch": lambda rows: rows.padded_batch(3),
    "ragged_batch": lambda rows: rows.ragged_batch(3),
    "all": lambda rows: set_in_options(rows.batch(3).prefetch(2)).prefetch(-1),
}


def numbers(elements):
    return [n for element in elements for n in np.ravel(element).tolist()]


@pytest.mark.parametrize("calls", [4, tf.data.AUTOTUNE])
@pytest.mark.parametrize("above", UNORDERED)
def test_steps_that_save_at_delivery_read_each_element_once(above, calls):
    def make():
        return UNORDERED[above](unordered(Dataset.range(ROWS), calls))

    assert unordered_map(plan_of(make())) is not None
    iterator, before = iter(make()), []
    states = [([], through_json(iterator.get_state()))]
    for element in iterator:
        before += numbers([element])
        states.append((list(before), through_json(iterator.get_state())))
    for early, state in states[::5] + states[-2:]:
        again = iter(make())
        again.set_state(state)
        found = early + numbers(again)
        if above == "full batches":  # which of the elements are left over depends on the order
            assert len(set(found)) == len(found) == ROWS - ROWS % 3
        else:
            assert sorted(found) == list(range(ROWS))


ORDERED = {
    "two maps": unordered,
    "prefetch below a batch": lambda rows: rows.prefetch(5).batch(3),
    "batches of batches": lambda rows: rows.batch(2).batch(3),
    "a dataset that is opened": lambda rows: Dataset.range(1).flat_map(lambda _: rows),
    "the first elements of a second function": lambda rows: rows.map(int),
}


@pytest.mark.parametrize("above", ORDERED)
@pytest.mark.parametrize("reads", [1, 3, 4])
def test_the_order_is_kept_below_everything_else(above, reads):
    def make():
        return ORDERED[above](set_in_options(unordered(Dataset.range(ROWS), deterministic=None)))

    iterator = iter(make())
    before = numbers(next(iterator) for _ in range(reads))
    again = iter(make())
    again.set_state(through_json(iterator.get_state()))
    assert sorted(before + numbers(again)) == list(range(ROWS))


def test_a_distributed_dataset_keeps_the_order():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")

    def make():
        rows = unordered(Dataset.range(ROWS)).batch(4).prefetch(2)
        return iter(strategy.experimental_distribute_dataset(rows))

    iterator = make()
    before = numbers(next(iterator) for _ in range(4))
    again = make()
    again.set_state(through_json(iterator.get_state()))
    assert before + numbers(again) == list(range(ROWS))


def test_explain_says_where_the_order_is_kept():
    rows = unordered(Dataset.range(ROWS))
    kept = "results keep their order in spite of deterministic=False"
    assert kept in rows.shuffle(3).explain()
    assert (
        kept in set_in_options(unordered(Dataset.range(ROWS), deterministic=None).take(3)).explain()
    )
    assert kept not in rows.batch(3).prefetch(2).explain()
    assert kept not in unordered(Dataset.range(ROWS), deterministic=True).take(3).explain()
