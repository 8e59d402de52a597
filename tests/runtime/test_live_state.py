"""What is kept beside nodes is shared by what is derived from them, and by nothing else."""

import copy
import gc
import pickle
import weakref
from dataclasses import replace

import pytest

import evenfeed as tf
from evenfeed.core.side_effects import Effect
from evenfeed.dataset import plan_of
from evenfeed.plan.buffering import Cache
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.sources import Range
from evenfeed.runtime import live_state
from evenfeed.runtime.live_state import effects_of, ignored_by, memory_of, passes_of
from evenfeed.runtime.run import Run

Dataset = tf.data.Dataset
KEPT = [passes_of, memory_of, ignored_by]


@pytest.mark.parametrize("kept", KEPT)
def test_a_node_and_what_replaces_it_share_what_is_kept(kept):
    node = Cache(Range(0, 3))
    assert kept(replace(node, child=Range(0, 4))) is kept(node)
    assert kept(copy.copy(node)) is kept(node)


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("made", [copy.deepcopy, lambda node: pickle.loads(pickle.dumps(node))])
def test_equal_nodes_and_deep_copies_share_nothing(kept, made):
    node = Cache(Range(0, 3))
    assert kept(made(node)) is not kept(node)
    assert made(node) == node == Cache(Range(0, 3))
    assert kept(Cache(Range(0, 3))) is not kept(node)


def test_what_is_kept_is_freed_with_the_plan():
    dataset = Dataset.range(3).cache()
    list(dataset)
    gc.collect()
    before = len(live_state._memories._entries)
    del dataset
    gc.collect()
    assert len(live_state._memories._entries) < before


def test_passes_are_counted_and_a_look_ahead_is_not():
    passes = passes_of(Shuffle(Range(0, 3), 2, (1,)))
    assert (passes.peek(), passes.take(), passes.take(), passes.peek()) == (0, 0, 1, 2)


def test_ignored_errors_can_be_pickled():
    dataset = Dataset.from_tensor_slices([1, 0]).map(lambda x: 1 // int(x), vectorize=False)
    dataset = dataset.ignore_errors()
    list(dataset)
    copied = pickle.loads(pickle.dumps(dataset.ignored_errors()))
    assert (copied.count, len(copied.skipped)) == (1, 1)


def test_what_calls_show_is_known_to_copies_for_a_pass_and_to_no_other_function():
    dataset = Dataset.range(4).map(lambda x: x + 1, vectorize=False)
    one, two = plan_of(dataset).function, plan_of(dataset.map(lambda x: x)).function
    list(dataset)
    plan = plan_of(dataset)
    assert one.in_pass(Run(plan), plan).meter is one.meter
    assert (one.meter.rows, two.meter.rows) == (4, 0)


@pytest.mark.parametrize("made", [copy.deepcopy, lambda node: pickle.loads(pickle.dumps(node))])
def test_the_effects_of_groups_that_are_known_before_reading_are_those_of_copies_too(made):
    node = plan_of(Dataset.range(6).group_by_window(_parity, _scattered, window_size=3))
    assert Effect.DRAWS in effects_of(node)
    effects_of(node).add(Effect.PULLS)
    assert list(effects_of(made(node))) == [Effect.DRAWS] == list(node.effects)


def _parity(x):
    return x % 2


def _scattered(key, group):
    return group.map(lambda x: x + tf.random.uniform([], 0, 2, tf.int64), vectorize=False)


def test_a_dataset_whose_functions_refer_to_it_is_freed():
    class Data:
        def __init__(self):
            self.dataset = Dataset.range(3).map(self.next, vectorize=False).cache()

        def next(self, x):
            return x + 1

    data = Data()
    assert len(list(data.dataset)) == 3
    freed = weakref.ref(data)
    del data
    gc.collect()
    assert freed() is None
