"""The cluster in the environment variable TF_CONFIG."""

import json
import os
from typing import Any, cast

from evenfeed.cluster.resolvers.resolver import ClusterResolver, with_protocol
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described

_EXAMPLE = (
    "export TF_CONFIG='"
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker", "index": 0}}'
    "'"
)


class TFConfigClusterResolver(ClusterResolver):
    """Reads the cluster from TF_CONFIG, at every call. Arguments, and attributes set later, override it.

    Args:
        task_type: The job of this process.
        task_id: Its index in the job.
        rpc_layer: The protocol.
        environment: Where the program runs.

    Examples:
        >>> import json, os
        >>> import evenfeed as tf
        >>> os.environ["TF_CONFIG"] = json.dumps({
        ...     "cluster": {"worker": ["host0:2222", "host1:2222"]},
        ...     "task": {"type": "worker", "index": 1},
        ... })
        >>> resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        >>> resolver.task_id, resolver.master()
        (1, 'host1:2222')
        >>> del os.environ["TF_CONFIG"]
        >>> resolver.cluster_spec()
        ClusterSpec({})
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type, self._rpc_layer = task_type, rpc_layer
        self._task_id = None if task_id is None else _index(task_id)
        self._environment = environment

    def _found_task_type(self) -> str | None:
        found = _task().get("type")
        return None if found is None else str(found)

    def _found_task_id(self) -> int | None:
        found = _task().get("index")
        return None if found is None else _index(found)

    def _found_rpc_layer(self) -> str | None:
        return _config().get("rpc_layer")

    @property
    def environment(self) -> str | None:
        return self._environment

    def cluster_spec(self) -> ClusterSpec:
        """Return the cluster; an empty one if TF_CONFIG has none."""
        return ClusterSpec(_config().get("cluster", {}))

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return the address of a task, by default this one; empty if the cluster has fewer than two tasks."""
        session_master = _config().get("session_master")
        if session_master is not None:
            return session_master
        spec = self.cluster_spec()
        if sum(map(spec.num_tasks, spec.jobs)) < 2:
            return ""
        job: Any = self.task_type if task_type is None else task_type
        index: Any = self.task_id if task_id is None else task_id
        protocol = self.rpc_layer if rpc_layer is None else rpc_layer
        return with_protocol(spec.task_address(job, index), protocol)


def _config() -> dict[str, Any]:
    text = os.environ.get("TF_CONFIG", "{}")
    try:
        read: object = json.loads(text)
    except json.JSONDecodeError as error:
        error.args = (_message(f"TF_CONFIG is not JSON ({error}): {shortened(text)}."),)
        raise
    if not isinstance(read, dict):
        raise ValueError(_message(f"TF_CONFIG must be a JSON object, but got {shortened(text)}."))
    return cast("dict[str, Any]", read)


def _task() -> dict[str, Any]:
    task: object = _config().get("task", {})
    if not isinstance(task, dict):
        raise ValueError(
            _message(f'The "task" of TF_CONFIG must be an object, but got {shortened(task)}.')
        )
    return cast("dict[str, Any]", task)


def _index(found: Any) -> int:
    try:
        return int(found)
    except (TypeError, ValueError):
        raise ValueError(
            _message(f'The "index" of this task must be an integer, but got {shortened(found)}.')
        ) from None


def _message(what: str) -> str:
    return described(what, fix=_EXAMPLE)
