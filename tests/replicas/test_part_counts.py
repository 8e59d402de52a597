"""A per-replica value with too few or too many parts is refused: a part would be missing, or lost."""

import pytest

import evenfeed as tf
from evenfeed.replicas.values import PerReplica


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])


CALLS = {
    "run": lambda strategy, value: strategy.run(lambda x: x, args=(value,)),
    "run of a structure": lambda strategy, value: strategy.run(lambda x: x, args=({"a": [value]},)),
    "reduce": lambda strategy, value: strategy.reduce("SUM", value, axis=None),
    "gather": lambda strategy, value: strategy.gather(value, axis=0),
    "in a function": lambda strategy, value: tf.function(
        lambda: strategy.reduce("MEAN", value, axis=None)
    )(),
}


@pytest.mark.parametrize("count", [0, 2, 4])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_part_for_each_replica_is_needed(strategy, call, count):
    value = PerReplica(tuple(tf.constant([float(number)]) for number in range(count)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"3 replicas, but has {count}"):
        call(strategy, value)
