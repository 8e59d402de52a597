"""TPUs are not here, so the tests of a machine with TPUs put other devices in their place."""

import pytest

import evenfeed as tf
from evenfeed.cluster.hardware import Accelerators
from evenfeed.cluster.resolvers import tpu_resolver as resolvers
from evenfeed.errors import UnimplementedError
from evenfeed.strategy import tpu_strategy as strategies

Resolver = tf.distribute.cluster_resolver.TPUClusterResolver


@pytest.fixture
def two_tpus(monkeypatch):
    """Count two TPUs, and let CPUs stand for them."""
    monkeypatch.setattr(resolvers, "accelerators_in_use", lambda: Accelerators(tpus=2))
    cpus = tf.config.list_logical_devices("CPU")[:2]
    monkeypatch.setattr(strategies, "list_logical_devices", {"TPU": cpus}.__getitem__)


@pytest.mark.parametrize(
    "ask",
    [
        Resolver,
        lambda: Resolver(tpu=""),
        lambda: Resolver("my-tpu"),
        Resolver.connect,
        tf.distribute.TPUStrategy,
        tf.distribute.experimental.TPUStrategy,
        tf.tpu.experimental.initialize_tpu_system,
    ],
)
def test_a_machine_without_tpus_raises_what_programs_that_look_for_them_catch(ask):
    with pytest.raises(ValueError, match=r"no TPU on this machine(.|\n)*MirroredStrategy\(\)"):
        ask()


@pytest.mark.parametrize(
    "call", [tf.distribute.TPUStrategy, tf.tpu.experimental.initialize_tpu_system]
)
def test_the_name_of_a_tpu_in_place_of_a_resolver_does_not_train_on_the_cpu(call):
    with pytest.raises(TypeError, match=r"must be a TPUClusterResolver, but got 'local'"):
        call("local")


def test_a_program_for_tpus_runs_on_all_of_them(two_tpus):
    resolver = Resolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    assert strategy.num_replicas_in_sync == 2
    assert strategy.cluster_resolver is resolver
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
    sums = [strategy.reduce("SUM", strategy.run(tf.square, (x,)), axis=0) for x in dataset]
    assert [int(one) for one in sums] == [14]
    tf.tpu.experimental.shutdown_tpu_system(resolver)


def test_the_resolver_of_tpus_answers_as_tensorflows(two_tpus):
    resolver = Resolver.connect()
    assert resolver.cluster_spec().as_dict() == {}
    assert resolver.master() == resolver.get_master() == resolver.environment == ""
    assert (resolver.task_type, resolver.task_id, resolver.get_job_name()) == (
        "worker",
        0,
        "worker",
    )


@pytest.mark.parametrize(
    "asked",
    [{"experimental_spmd_xla_partitioning": True}, {"experimental_device_assignment": object()}],
)
def test_another_layout_of_replicas_points_to_meshes(two_tpus, asked):
    with pytest.raises(UnimplementedError, match="MeshStrategy"):
        tf.distribute.TPUStrategy(**asked)


def test_the_tpus_of_several_hosts_point_to_meshes(two_tpus, monkeypatch):
    monkeypatch.setattr(strategies.jax, "process_count", lambda: 4)
    with pytest.raises(UnimplementedError, match=r"4 are connected(.|\n)*distribute"):
        tf.distribute.TPUStrategy()


def test_other_machines_are_not_driven_from_this_one():
    spec = tf.train.ClusterSpec({"worker": ["a:1"]})
    for cluster in (spec, tf.distribute.cluster_resolver.SimpleClusterResolver(spec)):
        with pytest.raises(UnimplementedError, match="MultiWorkerMirroredStrategy"):
            tf.config.experimental_connect_to_cluster(cluster)
    with pytest.raises(
        ValueError, match="must be a ClusterSpec or a ClusterResolver, but got None"
    ):
        tf.config.experimental_connect_to_cluster(None)
