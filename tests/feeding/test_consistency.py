"""Which differences between the workers' datasets are refused."""

import json

import numpy as np
import pytest
from tests.feeding.workers import InMemory, on_all

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import plan_of
from evenfeed.feeding.consistency import check_same, cut_facts, taken_facts
from evenfeed.feeding.conversation import Topic
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.rewrite.worker_plan import Sharded

DATA, FILE = AutoShardPolicy.DATA, AutoShardPolicy.FILE
BATCHES = tf.data.Dataset.range(10).batch(4)


def cut(dataset, policy=DATA, padded=None):
    plan = plan_of(dataset)
    return cut_facts(plan, Sharded(plan, policy), padded)


def taken(dataset):
    return taken_facts(plan_of(dataset), per_replica=False)


def compare(*facts):
    """Return the error message of each worker."""
    memory = InMemory(len(facts))

    def run(worker):
        try:
            check_same(Topic("x", memory.seen_by(worker)), facts[worker])
        except InvalidArgumentError as error:
            return error.message

    return on_all(len(facts), run)


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        (cut(BATCHES), taken(BATCHES), "distribution method is experimental_"),
        (cut(BATCHES, FILE), cut(BATCHES, DATA), "auto_shard_policy is FILE on worker 0; DATA on"),
        (
            cut(BATCHES, padded=2),
            cut(BATCHES),
            "number of rows per replica is 2 on worker 0; None on",
        ),
        (cut(BATCHES), cut(BATCHES.take(1)), "cardinality is 3 on worker 0; 1 on worker 1."),
        (cut(BATCHES), cut(tf.data.Dataset.range(12).batch(5)), "batch size is 4 on worker 0; 5"),
        (
            taken(BATCHES),
            taken(BATCHES.map(lambda x: tf.cast(x, tf.float32))),
            "elements is int64 on worker 0; float32 on worker 1.",
        ),
        (taken(BATCHES), taken(BATCHES.map(lambda x: (x, x))), "elements is int64 on worker 0; ("),
    ],
)
def test_what_would_let_workers_take_unlike_steps_is_refused_on_all(first, second, what):
    told = compare(first, second)
    assert told[0] == told[1]
    assert told[0].startswith(f"The workers do not distribute the same dataset. Its {what}")


def test_those_that_say_the_same_are_named_together():
    (told, *_) = compare(cut(BATCHES), cut(BATCHES.take(2)), cut(BATCHES))
    assert told.endswith("cardinality is 3 on worker 0, worker 2; 2 on worker 1.")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            taken(BATCHES),
            taken(tf.data.Dataset.range(3).batch(2)),
        ),  # datasets of a dataset_fn may have any length
        (cut(BATCHES, FILE), cut(tf.data.Dataset.range(99).batch(4), FILE)),
        (cut(BATCHES, FILE), cut(BATCHES.prefetch(7), FILE)),
        (
            cut(BATCHES.map(np.negative, num_parallel_calls=2)),
            cut(BATCHES.map(np.negative, num_parallel_calls=16).prefetch(3)),
        ),
        (cut(BATCHES.shuffle(4)), cut(BATCHES.shuffle(4, seed=7))),
    ],
)
def test_what_machines_may_differ_in_is_not(first, second):
    assert compare(first, second) == [None, None]


def test_facts_can_be_sent():
    facts = cut(tf.data.Dataset.from_tensors({"a": [1.0], "b": ("x", 2)}).batch(2))
    assert json.loads(json.dumps(facts)) == facts
