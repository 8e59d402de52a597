"""What is kept beside nodes is shared by what is derived from them, and by nothing else."""

# pyright: basic

import copy
import gc
import pickle
from dataclasses import replace

import pytest

import evenfeed as tf
from evenfeed.plan.buffering import Cache
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.sources import Range
from evenfeed.runtime import live_state
from evenfeed.runtime.live_state import ignored_by, memory_of, passes_of

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
