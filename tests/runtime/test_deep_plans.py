"""Plans of many steps, and of one step in many places."""

import pickle
from collections import Counter
from functools import reduce

import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import plan_of
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.plan.node import rebuilt
from evenfeed.plan.options import options_of
from evenfeed.runtime.build import build
from evenfeed.runtime.fingerprint import fingerprint, identity
from evenfeed.runtime.functions.called_functions import called_in
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.run import Run

Dataset = tf.data.Dataset
MANY = 300


def stacked(step, count=MANY):
    return reduce(lambda dataset, _: step(dataset), range(count), Dataset.range(3))


def numbers(dataset):
    return [int(x) for x in dataset]


STEPS = {
    "cache": lambda d: d.cache(),
    "filter": lambda d: d.filter(lambda x: x > 0),
    "flat_map": lambda d: d.flat_map(Dataset.from_tensors),
    "ignore_errors": lambda d: d.ignore_errors(),
    "map": lambda d: d.map(abs, vectorize=False),
    "options": lambda d: d.with_options(tf.data.Options()),
    "repeat": lambda d: d.repeat(1),
    "shuffle": lambda d: d.shuffle(1, seed=1),
    "skip": lambda d: d.skip(0),
    "take": lambda d: d.take(3),
    "unique": lambda d: d.unique(),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_many_steps_are_read_resumed_and_explained(step):
    dataset = stacked(step, 100 if step is STEPS["flat_map"] else MANY)
    first = 0 if step is not STEPS["filter"] else 1
    assert numbers(dataset) == [0, 1, 2][first:]
    iterator = iter(dataset)
    next(iterator)
    again = iter(dataset)
    again.set_state(iterator.get_state())
    assert numbers(again) == [1, 2][first:]
    assert "resume" in str(dataset.explain())


def test_too_many_steps_are_an_error_not_a_crash():
    with pytest.raises(InvalidArgumentError, match="chain of 2001 steps"):
        stacked(lambda d: d.take(3), 2001)


def test_any_number_of_datasets_is_concatenated():
    dataset = reduce(Dataset.concatenate, [Dataset.range(n, n + 1) for n in range(5000)])
    assert numbers(dataset) == list(range(5000))
    assert numbers(dataset.filter(lambda x: x > 4990)) == list(range(4991, 5000))
    assert dataset.cardinality() == 5000


def doubled(dataset, join=Dataset.concatenate, times=100):
    return reduce(lambda d, _: join(d, d), range(times), dataset)


def added(one, two):
    return Dataset.zip(one, two).map(lambda x, y: x + y)


def test_a_node_in_many_places_is_looked_at_once():
    dataset = doubled(Dataset.range(2).batch(1).repeat(1), times=60)
    plan = plan_of(dataset)
    assert len(list(plan.walk())) == len(list(plan.bottom_up())) == 63
    assert plan.paths == 2**60
    assert rebuilt(plan, lambda node: node) is plan
    assert global_batch_size(plan) == 1
    assert options_of(plan).deterministic is None
    assert called_in(plan) == []
    assert fingerprint(plan) == fingerprint(pickle.loads(pickle.dumps(plan)))
    assert identity(plan) != identity(plan_of(doubled(Dataset.range(2).batch(2), times=60)))
    assert dataset.cardinality() == 2**61
    assert "step" in str(dataset.explain())
    assert numbers(doubled(Dataset.range(2)).skip(2**40).take(3)) == [0, 1, 0]


def test_random_orders_in_many_places_are_read_without_looking_at_all():
    dataset = doubled(Dataset.range(2).shuffle(2))
    iterator = iter(dataset)
    assert sorted(int(next(iterator)) for _ in range(2)) == [0, 1]
    again = iter(dataset)
    again.set_state(iterator.get_state())
    assert [int(next(again)) for _ in range(6)] == [int(next(iterator)) for _ in range(6)]


def test_zips_of_themselves_cost_as_much_as_they_have_steps():
    assert numbers(doubled(Dataset.range(3), added, 12)) == [0, 2**12, 2**13]


def test_whatever_lies_deep_in_a_plan_is_part_of_its_identity():
    def of(first):
        return plan_of(reduce(lambda d, _: d.take(3), range(50), Dataset.from_tensor_slices(first)))

    assert identity(of([1, 2])) == identity(of([1, 2])) != identity(of([1, 3]))


DEEP = {
    "scan": lambda d: d.scan(0, lambda state, x: (state, x)),
    "flat_map": lambda d: d.flat_map(Dataset.from_tensors),
    "take_while": lambda d: d.take_while(lambda x: x >= 0),
    "ignore_errors": lambda d: d.ignore_errors(),
    "choose_from_datasets": lambda d: Dataset.choose_from_datasets([d], Dataset.range(1)),
}


@pytest.mark.parametrize("kind", DEEP)
def test_a_read_asks_each_step_of_a_chain_for_its_position_a_few_times(kind, monkeypatch):
    asked, state = [], Walk.state

    def counted(self):
        asked.append(self)
        return state(self)

    monkeypatch.setattr(Walk, "state", counted)
    plan = plan_of(reduce(lambda d, _: DEEP[kind](d), range(40), Dataset.range(10)))
    operator = build(plan, Run(plan))
    assert operator.read(1) is not None
    assert max(Counter(map(id, asked)).values()) < 10
