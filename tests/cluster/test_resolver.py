"""Resolvers that the program itself configures. tests/oracle holds TensorFlow's answers."""

import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.cluster.hardware import Accelerators
from evenfeed.cluster.resolvers import resolver

SPEC = tf.train.ClusterSpec({"worker": ["a:1", "b:1"]})
Simple = tf.distribute.cluster_resolver.SimpleClusterResolver
Union = tf.distribute.cluster_resolver.UnionResolver


class Own(tf.distribute.cluster_resolver.ClusterResolver):
    """A resolver that a user writes for another kind of cluster."""

    def cluster_spec(self):
        return SPEC

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        return ""


def test_a_users_resolver_needs_two_methods_only():
    own = Own()
    assert (own.task_type, own.task_id, own.rpc_layer, own.environment) == (None, None, None, "")
    own.task_type, own.task_id, own.rpc_layer = "worker", 1, "grpc"
    assert (own.task_type, own.task_id, own.rpc_layer) == ("worker", 1, "grpc")


@pytest.mark.parametrize(
    ("task", "counted"),
    [((), True), (("worker", 1), True), (("worker", 0), False), (("ps", 1), False)],
)
def test_accelerators_are_known_of_the_own_task_alone(monkeypatch, task, counted):
    monkeypatch.setattr(resolver, "accelerators_in_use", lambda: Accelerators(gpus=2))
    own = Own()
    own.task_type, own.task_id = "worker", 1
    assert own.num_accelerators(*task) == ({"GPU": 2} if counted else {})


def test_index_0_of_a_union_wins_over_the_first_resolvers():
    assert Union(Simple(SPEC, task_id=1), task_id=0).task_id == 0


def test_a_spec_is_no_dict():
    with error_saying(
        TypeError,
        "cluster_spec must be a ClusterSpec, but got {'worker': []}.",
        fix='pass ClusterSpec({"worker": ["host0:2222"]}).',
    ):
        Simple({"worker": []})


def test_a_union_names_the_task_that_two_resolvers_have():
    sparse = Simple(tf.train.ClusterSpec({"worker": {1: "c:1", 5: "d:1"}}))
    with pytest.raises(KeyError, match="Two resolvers have a task 1 of the job 'worker'"):
        Union(Simple(SPEC), sparse).cluster_spec()
