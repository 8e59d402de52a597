"""MirroredStrategy: its devices, its errors, and its local results."""

import jax
import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

DEVICES = jax.local_devices(backend="cpu")
FULL = "/job:localhost/replica:0/task:0/device:CPU:"


def strategy_of(count):
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)])


@pytest.mark.parametrize("count", range(1, 9))
def test_there_is_one_replica_for_each_name(count):
    strategy = strategy_of(count)
    assert strategy.num_replicas_in_sync == count
    assert strategy.devices == tuple(f"{FULL}{index}" for index in range(count))
    assert list(strategy.mesh.devices) == DEVICES[:count]
    assert strategy.mesh.axis_names == ("replica",)


@pytest.mark.parametrize("devices", [None, [], ()])
def test_without_names_every_cpu_is_a_replica_where_there_is_no_gpu(devices):
    assert tf.distribute.MirroredStrategy(devices).num_replicas_in_sync == len(DEVICES)


@pytest.mark.parametrize(
    "names",
    [["cpu:3", "/device:CPU:1"], ("CPU:3", "CPU:1"), iter([f"{FULL}3", "/job:chief/cpu:1"])],
)
def test_names_may_be_written_in_every_way_and_keep_their_order(names):
    assert tf.distribute.MirroredStrategy(names).devices == (f"{FULL}3", f"{FULL}1")


def test_a_strategy_shows_its_devices():
    assert repr(strategy_of(2)) == f"<MirroredStrategy on {FULL}0, {FULL}1>"
    assert str(strategy_of(1)) == f"<MirroredStrategy on {FULL}0>"


@pytest.mark.parametrize("names", [["CPU:0", "CPU:0"], ["CPU:0", "/cpu"]])
def test_each_replica_needs_a_device_of_its_own(names):
    with error_saying(
        ValueError,
        f"Each replica needs a device of its own, but got {names}.",
        fix='name one or more devices, each once: MirroredStrategy(["CPU:0", "CPU:1"]).',
    ):
        tf.distribute.MirroredStrategy(names)


def test_one_name_alone_must_stand_in_a_list():
    with error_saying(
        ValueError,
        "devices must be a list of device names, but got 'CPU:0'.",
        fix="write MirroredStrategy(['CPU:0']).",
    ):
        tf.distribute.MirroredStrategy("CPU:0")


@pytest.mark.parametrize("devices", [4, b"CPU:0", 1.5, True, len])
def test_what_is_no_list_is_refused(devices):
    with error_saying(
        TypeError,
        f"devices must be a list of device names, but got {devices!r}.",
        fix='write MirroredStrategy(["CPU:0", "CPU:1"]).',
    ):
        tf.distribute.MirroredStrategy(devices)


def test_logical_devices_may_stand_in_the_list():
    devices = tf.config.list_logical_devices("CPU")[1::-1]
    assert tf.distribute.MirroredStrategy(devices).devices == (f"{FULL}1", f"{FULL}0")


def test_a_logical_device_alone_must_stand_in_a_list():
    device = tf.config.list_logical_devices("CPU")[1]
    with error_saying(
        ValueError,
        f"{device!r} is not a device name: it is LogicalDevice, not a string.",
        fix="pass device.name, here '/device:CPU:1'.",
    ):
        tf.distribute.MirroredStrategy(device)


@pytest.mark.parametrize("alone", [False, True], ids=["in a list", "alone"])
def test_a_physical_device_is_passed_as_a_logical_one(alone):
    device = tf.config.list_physical_devices("CPU")[0]
    with error_saying(
        ValueError,
        f"{device!r} is not a device name: it is PhysicalDevice, not a string.",
        fix="pass the name of a logical device, here 'CPU:0'.",
    ):
        tf.distribute.MirroredStrategy(device if alone else [device])


@pytest.mark.parametrize(("asked", "proposed"), [(1, 2), (2, 2), (3, 3)])
def test_gpus_that_are_not_there_can_be_tried_as_cpus(asked, proposed):
    cpus = ", ".join(f'"CPU:{index}"' for index in range(proposed))
    with error_saying(
        InvalidArgumentError,
        "There is no device GPU:0 in this process: it has CPU:0, …",
        fix="this process has no GPU. To use logical CPUs instead, add these lines before anything computes:\n"
        "       evenfeed.config.set_logical_device_configuration("
        'evenfeed.config.list_physical_devices("CPU")[0], '
        f"[evenfeed.config.LogicalDeviceConfiguration()] * {proposed})\n"
        f"       strategy = evenfeed.distribute.MirroredStrategy([{cpus}])",
    ):
        tf.distribute.MirroredStrategy([f"GPU:{index}" for index in range(asked)])


def test_replicas_that_could_not_meet_are_refused_at_once(monkeypatch):
    monkeypatch.setattr("evenfeed.strategy.xla_threads.pool_threads", lambda: 3)
    with error_saying(
        RuntimeError,
        "JAX's backend started with 3 threads, too few for collectives between 4 CPU devices: …",
        fix="export …",
    ):
        tf.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2", "CPU:3"])
    assert strategy_of(1).num_replicas_in_sync == 1


@pytest.mark.parametrize("dataset", [[1, 2], None, np.zeros(3)])
def test_only_a_dataset_can_be_distributed(dataset):
    with error_saying(
        TypeError,
        f"dataset must be a Dataset, but got {dataset!r}.",
        fix="make one first: evenfeed.data.Dataset.from_tensor_slices(value).batch(n).",
    ):
        strategy_of(2).experimental_distribute_dataset(dataset)


def test_local_results_are_the_parts_by_replica():
    value = tf.distribute.PerReplica([1, 2])
    local = strategy_of(2).experimental_local_results
    assert local(value) == (1, 2)
    assert local((value, {"a": [value, 5]})) == ((1, {"a": [1, 5]}), (2, {"a": [2, 5]}))


@pytest.mark.parametrize("value", [3, None, "text"])
def test_the_local_result_of_a_plain_value_is_itself(value):
    assert strategy_of(2).experimental_local_results(value) == (value,)


def test_local_results_of_a_value_alone_are_all_its_parts():
    value = tf.distribute.PerReplica([1, 2, 3])
    assert strategy_of(2).experimental_local_results(value) == (1, 2, 3)


@pytest.mark.parametrize("parts", [0, 1, 3, 8])
def test_a_structure_of_another_strategys_values_is_refused(parts):
    value = tf.distribute.PerReplica(list(range(parts)))
    with error_saying(
        InvalidArgumentError,
        f"A value in the structure has {parts} parts, but this strategy has 2 replicas.",
        fix="use the strategy that made the value, …",
    ):
        strategy_of(2).experimental_local_results({"a": value})


def test_one_replica_alone_is_counted_as_one():
    with pytest.raises(
        InvalidArgumentError, match=r"has 2 parts, but this strategy has 1 replica\."
    ):
        strategy_of(1).experimental_local_results([tf.distribute.PerReplica([1, 2])])
