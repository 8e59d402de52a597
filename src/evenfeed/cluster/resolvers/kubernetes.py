"""The cluster that runs in Kubernetes pods, selected by label."""

from collections.abc import Mapping, Sequence
from enum import Enum
from importlib import import_module
from typing import Any, Final

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


class KubernetesExecutableLocation(Enum):
    """Where the program runs: inside or outside the Kubernetes cluster."""

    WITHIN_CLUSTER = 0
    OFF_CLUSTER = 1


_WITHIN: Final = KubernetesExecutableLocation.WITHIN_CLUSTER


class KubernetesClusterResolver(ClusterResolver):
    """Asks Kubernetes for the running pods that have each job's labels.

    It cannot know which of them this process is: set `task_type` and `task_id`.

    Args:
        job_to_label_mapping: The label selectors of each job's pods; by default
            `{"worker": ["job-name=tensorflow"]}`.
        tf_server_port: The port of every task.
        rpc_layer: The protocol.
        override_client: Used instead of the client from the package `kubernetes`; must have
            `list_pod_for_all_namespaces(label_selector=...)`.
        executable_location: Where the program runs, which decides where its credentials are found.

    Raises:
        ImportError: The package `kubernetes` is not installed, and no client is passed.
        ValueError: There is no such location.
    """

    def __init__(
        self,
        job_to_label_mapping: Mapping[str, Sequence[str]] | None = None,
        tf_server_port: int = 8470,
        rpc_layer: str = "grpc",
        override_client: Any = None,
        executable_location: KubernetesExecutableLocation = _WITHIN,
    ) -> None:
        self._client = override_client or _client(executable_location)
        self._labels = dict(job_to_label_mapping or {"worker": ["job-name=tensorflow"]})
        self._port = tf_server_port
        self._rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """Ask for the pods, and return their addresses, sorted by pod name within each selector.

        Raises:
            RuntimeError: A pod is not running.
        """
        return ClusterSpec(
            {
                job: [
                    f"{_address(pod)}:{self._port}"
                    for each in selectors
                    for pod in self._pods(each)
                ]
                for job, selectors in self._labels.items()
            }
        )

    def _pods(self, selector: str) -> list[Any]:
        found = self._client.list_pod_for_all_namespaces(label_selector=selector).items
        return sorted(found, key=lambda pod: pod.metadata.name)

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return the address of a task, by default this one; empty if unknown."""
        return self._task_master(task_type, task_id, rpc_layer)


def _address(pod: Any) -> str:
    if pod.status.phase != "Running":
        raise RuntimeError(
            described(
                f'The pod "{pod.metadata.name}" is not running: its phase is "{pod.status.phase}".',
                fix="wait until all pods are running, then start.",
            )
        )
    return pod.status.host_ip


def _client(location: object) -> Any:
    load = _LOADERS.get(location)
    if load is None:
        raise ValueError(
            described(
                f"There is no executable_location {shortened(location)}.",
                fix="pass a member of KubernetesExecutableLocation.",
            )
        )
    try:
        config: Any = import_module("kubernetes.config")
        client: Any = import_module("kubernetes.client")
    except ImportError:
        raise ImportError(
            described(
                "KubernetesClusterResolver needs the package kubernetes, which is not installed.",
                fix="pip install kubernetes, or pass override_client.",
            )
        ) from None
    getattr(config, load)()
    return client.CoreV1Api()


_LOADERS: Final[Mapping[object, str]] = {
    KubernetesExecutableLocation.WITHIN_CLUSTER: "load_incluster_config",
    KubernetesExecutableLocation.OFF_CLUSTER: "load_kube_config",
}
