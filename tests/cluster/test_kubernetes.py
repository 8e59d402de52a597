"""Kubernetes: which client is used. tests/oracle holds TensorFlow's answers for a fake client."""

import sys
from types import SimpleNamespace

import pytest
from tests.saying import error_saying

import evenfeed as tf

resolvers = tf.distribute.cluster_resolver
make, places = resolvers.KubernetesClusterResolver, resolvers.KubernetesExecutableLocation


@pytest.fixture
def loaded(monkeypatch):
    """Install a fake package `kubernetes`, and return the list of its calls."""
    calls = []
    pod = SimpleNamespace(
        metadata=SimpleNamespace(name="p"),
        status=SimpleNamespace(phase="Running", host_ip="10.0.0.1"),
    )
    listed = SimpleNamespace(
        list_pod_for_all_namespaces=lambda label_selector: SimpleNamespace(items=[pod])
    )
    config = SimpleNamespace(
        load_incluster_config=lambda: calls.append("in"),
        load_kube_config=lambda: calls.append("off"),
    )
    monkeypatch.setitem(sys.modules, "kubernetes", SimpleNamespace(__path__=[]))
    monkeypatch.setitem(sys.modules, "kubernetes.config", config)
    monkeypatch.setitem(sys.modules, "kubernetes.client", SimpleNamespace(CoreV1Api=lambda: listed))
    return calls


@pytest.mark.parametrize(
    ("place", "call"), [(places.WITHIN_CLUSTER, "in"), (places.OFF_CLUSTER, "off")]
)
def test_rights_come_from_where_the_program_runs(loaded, place, call):
    resolver = make(executable_location=place)
    assert resolver.cluster_spec().as_dict() == {"worker": ["10.0.0.1:8470"]}
    assert loaded == [call]


def test_another_place_is_refused():
    with error_saying(
        ValueError,
        "There is no executable_location 'moon'.",
        fix="pass a member of KubernetesExecutableLocation.",
    ):
        make(executable_location="moon")


def test_without_the_package_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes.config", None)
    with error_saying(
        ImportError,
        "KubernetesClusterResolver needs the package kubernetes, which is not installed.",
        fix="pip install kubernetes, or pass override_client.",
    ):
        make()
