"""The size of a global batch, by TensorFlow's rules."""

import numpy as np
import pytest
from tests.feeding.distribution import with_policy

import evenfeed as tf
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.dataset import plan_of
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.reading import BatchReading, alone

D = tf.data.Dataset
BATCHES = D.range(10).batch(4)

SEEN = {
    "batch": BATCHES,
    "padded": D.range(10).padded_batch(4),
    "take": BATCHES.take(2),
    "skip": BATCHES.skip(1),
    "repeat": BATCHES.repeat(2),
    "prefetch": BATCHES.prefetch(2),
    "cache": BATCHES.cache(),
    "options": BATCHES.with_options(tf.data.Options()),
    "shard": BATCHES.shard(2, 0),
    "shuffle": BATCHES.shuffle(3),
    "filter": BATCHES.filter(lambda x: x[0] > 3),
    "asserted": BATCHES.apply(tf.data.experimental.assert_cardinality(3)),
    "zip": D.zip((BATCHES, BATCHES)),
    "concatenate": BATCHES.concatenate(BATCHES),
    "static map": D.range(10).batch(4, drop_remainder=True).map(lambda x: x * 2),
    "static pair": D.from_tensors((np.zeros(4), np.zeros((4, 2)))),
}
HIDDEN = {
    "map": BATCHES.map(lambda x: x),
    "parallel batch": D.range(10).batch(4, num_parallel_calls=2),
    "rebatch": D.range(10).batch(3).rebatch(4),
    "take_while": BATCHES.take_while(lambda x: x[0] < 8),
    "ignore_errors": BATCHES.ignore_errors(),
    "unlike zip": D.zip((BATCHES, D.range(10).batch(2))),
    "unlike concatenate": BATCHES.concatenate(D.range(10).batch(2)),
    "flat_map": D.range(2).flat_map(lambda x: D.range(5).batch(4)),
    "unlike pair": D.from_tensors((np.zeros(4), np.zeros(3))),
    "scalar": D.range(3),
}


@pytest.mark.parametrize("name", SEEN)
def test_the_size_is_seen_through(name):
    assert global_batch_size(plan_of(SEEN[name])) == 4


@pytest.mark.parametrize("name", HIDDEN)
def test_the_size_is_hidden_by(name):
    assert global_batch_size(plan_of(HIDDEN[name])) is None


def sizes_under(dataset, policy, replicas):
    return BatchReading(plan_of(with_policy(dataset, policy)), alone(replicas)).sizes


@pytest.mark.parametrize("policy", ["AUTO", "DATA"])
def test_each_batch_is_cut_by_itself_under(policy):
    assert sizes_under(BATCHES, policy, 3) is None


@pytest.mark.parametrize("policy", ["OFF", "FILE", "HINT"])
def test_rows_flow_on_under(policy):
    assert sizes_under(BATCHES, policy, 3) == (2, 1, 1)
    assert sizes_under(BATCHES, policy, 8) == (1,) * 4 + (0,) * 4
    assert sizes_under(HIDDEN["map"], policy, 3) is None


def test_rows_are_counted_where_they_can_be():
    for dataset, rows in [
        (BATCHES, 10),
        (BATCHES.prefetch(1).cache().with_options(tf.data.Options()), 10),
        (BATCHES.repeat(3), 30),
        (D.range(11).batch(4, drop_remainder=True).repeat(2), 16),
        (D.range(0).batch(4), 0),
        (BATCHES.repeat(), INFINITE),
        (BATCHES.repeat().map(lambda x: x), INFINITE),
        (BATCHES.take(2), UNKNOWN),
        (D.range(9).filter(lambda x: x > 1).batch(4), UNKNOWN),
    ]:
        assert plan_of(dataset).row_count == rows


def test_a_short_last_batch_is_known_where_it_can_be():
    assert plan_of(BATCHES.prefetch(1).cache()).short_batch == 2
    for without in (D.range(8).batch(4), D.range(0).batch(4), D.range(9).batch(4, True)):
        assert plan_of(without).short_batch is None
    for unknown in (BATCHES.repeat(2), D.range(9).filter(lambda x: x > 1).batch(4), D.range(3)):
        assert plan_of(unknown).short_batch is None
