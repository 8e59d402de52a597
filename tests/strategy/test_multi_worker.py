"""MultiWorkerMirroredStrategy with one worker, and its errors."""

import json

import jax
import pytest
from tests.saying import error_saying

import evenfeed as tf

v1 = tf.compat.v1.distribute.experimental
older = tf.distribute.experimental


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)


def set_cluster(monkeypatch, cluster, job="worker", index=0):
    text = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
    monkeypatch.setenv("TF_CONFIG", text)


def test_without_a_cluster_all_local_devices_are_replicas():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert list(strategy.mesh.devices) == jax.local_devices()
    with strategy.scope():
        v = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
    strategy.run(lambda: v.assign_add(tf.constant(1.0)))
    assert float(v.numpy()) == len(jax.local_devices())


@pytest.mark.parametrize(
    ("cluster", "job"),
    [
        ({"worker": ["a:1"]}, "worker"),
        ({"chief": ["a:1"], "ps": ["b:1"]}, "chief"),
        ({"worker": ["a:1", "b:1"]}, "evaluator"),
    ],
)
def test_a_task_that_trains_alone_is_its_own_chief(monkeypatch, cluster, job):
    set_cluster(monkeypatch, cluster, job)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == len(jax.local_devices())
    assert strategy.extended.should_checkpoint
    assert strategy.cluster_resolver.task_type == job


def test_every_name_makes_one():
    communication = older.CollectiveCommunication.RING
    for made in (
        older.MultiWorkerMirroredStrategy(communication),
        v1.MultiWorkerMirroredStrategy(communication=communication),
    ):
        assert isinstance(made, tf.distribute.MultiWorkerMirroredStrategy)
        assert repr(made).startswith("<MultiWorkerMirroredStrategy on ")
    assert not isinstance(tf.distribute.MirroredStrategy(), older.MultiWorkerMirroredStrategy)


def test_a_resolver_comes_back():
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({}))
    assert tf.distribute.MultiWorkerMirroredStrategy(resolver).cluster_resolver is resolver


def test_what_is_no_resolver_is_refused():
    with error_saying(
        ValueError,
        "cluster_resolver must be a ClusterResolver, but got 'worker'.",
        fix="pass one of evenfeed.distribute.cluster_resolver, or set TF_CONFIG and pass nothing.",
    ):
        tf.distribute.MultiWorkerMirroredStrategy("worker")


def test_what_are_no_options_is_refused():
    with error_saying(
        ValueError,
        "communication_options must be CommunicationOptions, but got 'RING'.",
        fix="pass evenfeed.distribute.experimental.CommunicationOptions(timeout_seconds=60).",
    ):
        tf.distribute.MultiWorkerMirroredStrategy(communication_options="RING")
