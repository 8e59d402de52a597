"""CrossDeviceOps: accepted under TensorFlow's names, with their arguments checked."""

import pytest
from tests.saying import error_saying

import evenfeed as tf


@pytest.mark.parametrize(
    "ops",
    [
        tf.distribute.NcclAllReduce(),
        tf.distribute.NcclAllReduce(num_packs=0),
        tf.distribute.HierarchicalCopyAllReduce(num_packs=2),
        tf.distribute.ReductionToOneDevice(reduce_to_device="CPU:0", accumulation_fn=sum),
        tf.distribute.CrossDeviceOps(),
        None,
    ],
)
def test_all_kinds_give_the_same_sum(ops):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
    value = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", 2.0))
    assert [float(part) for part in strategy.experimental_local_results(value)] == [4.0, 4.0]


@pytest.mark.parametrize("kind", ["NcclAllReduce", "HierarchicalCopyAllReduce"])
def test_packs_are_counted_from_zero(kind):
    with error_saying(
        ValueError, "num_packs must be at least 0, but got -1.", fix="pass 1, or leave it out."
    ):
        getattr(tf.distribute, kind)(-1)


def test_what_is_none_of_them_is_refused():
    with error_saying(
        TypeError,
        "cross_device_ops must be a CrossDeviceOps, but got 'nccl'.",
        fix="pass evenfeed.distribute.NcclAllReduce(), or nothing.",
    ):
        tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops="nccl")
