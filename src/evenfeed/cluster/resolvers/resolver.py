"""`ClusterResolver`, the base of all cluster resolvers, and two that return what the program passes to them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from evenfeed.cluster.hardware import accelerators_in_use
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


class ClusterResolver(ABC):
    """Tells which tasks the cluster has, and which of them this process is.

    A subclass defines `cluster_spec` and `master`, and sets `task_type`, `task_id` and `rpc_layer`.
    """

    _task_type: str | None = None
    _task_id: int | None = None
    _rpc_layer: str | None = None

    @abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """Return the current jobs and addresses."""

    @abstractmethod
    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return the address of a task, by default this one, prefixed with the protocol if there is one."""

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: object = None,
    ) -> Mapping[str, int]:
        """Return how many GPUs or TPU chips a task has.

        A process sees only its own machine, so the result is empty for other tasks. Does not start JAX.

        Args:
            task_type: The task's job; by default this process's job.
            task_id: Its index; by default this process's index.
            config_proto: Accepted for compatibility.
        """
        del config_proto
        self.master(task_type, task_id)  # raises if there is no such task
        own = (self.task_type, self.task_id)
        asked = (task_type or own[0], own[1] if task_id is None else task_id)
        found = accelerators_in_use() if asked == own else None
        counts = {"GPU": found.gpus, "TPU": found.tpus} if found is not None else {}
        return {kind: count for kind, count in counts.items() if count}

    @property
    def environment(self) -> str | None:
        """Where the program runs; empty by default."""
        return ""

    @property
    def task_type(self) -> str | None:
        """The job of this process; None if unknown. A value that was set overrides the detected one."""
        return self._found_task_type() if self._task_type is None else self._task_type

    @task_type.setter
    def task_type(self, task_type: str | None) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """The index of this process in its job; None if unknown."""
        return self._found_task_id() if self._task_id is None else self._task_id

    @task_id.setter
    def task_id(self, task_id: int | None) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """The protocol with which `master` prefixes addresses."""
        return self._found_rpc_layer() if self._rpc_layer is None else self._rpc_layer

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None:
        self._rpc_layer = rpc_layer

    def _found_task_type(self) -> str | None:
        return None

    def _found_task_id(self) -> int | None:
        return None

    def _found_rpc_layer(self) -> str | None:
        return None

    def _task_master(
        self, task_type: str | None, task_id: int | None, rpc_layer: str | None
    ) -> str:
        """Return the address of the given task, by default this one; empty if unknown."""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        if job is None or index is None:
            return ""
        return with_protocol(
            self.cluster_spec().task_address(job, index), rpc_layer or self.rpc_layer
        )


class SimpleClusterResolver(ClusterResolver):
    """Returns what it was given.

    Args:
        cluster_spec: The cluster.
        master: What `master` returns if no task is given.
        task_type: The job of this process.
        task_id: Its index in the job.
        environment: Where the program runs.
        num_accelerators: The number of accelerators, by type.
        rpc_layer: The protocol.

    Examples:
        >>> import evenfeed as tf
        >>> spec = tf.train.ClusterSpec({"worker": ["host0:2222", "host1:2222"]})
        >>> resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        ...     spec, task_type="worker", task_id=1, rpc_layer="grpc")
        >>> resolver.master("worker", 0)
        'grpc://host0:2222'
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Mapping[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        _check_type(
            cluster_spec, ClusterSpec, "cluster_spec", 'ClusterSpec({"worker": ["host0:2222"]})'
        )
        _check_type(master, str, "master", '"host0:2222"')
        self._spec = cluster_spec
        self._master = master
        self._environment = environment
        self._num_accelerators = num_accelerators
        self._task_type, self._task_id, self._rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        return self._spec

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return the address of the given task; without both type and index, the master passed to the constructor."""
        address = self._master
        if task_type is not None and task_id is not None:
            address = self._spec.task_address(task_type, task_id)
        return with_protocol(address, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: object = None,
    ) -> Mapping[str, int]:
        """Return the numbers passed to the constructor, for every task."""
        del task_type, task_id, config_proto
        return {} if self._num_accelerators is None else self._num_accelerators

    @property
    def environment(self) -> str:
        return self._environment


class UnionResolver(ClusterResolver):
    """Merges the clusters of several resolvers. The first resolver answers everything else.

    Args:
        args: The resolvers.
        rpc_layer: Overrides the first resolver's.
        task_type: Overrides the first resolver's.
        task_id: Overrides the first resolver's.

    Examples:
        >>> import evenfeed as tf
        >>> simple, spec = tf.distribute.cluster_resolver.SimpleClusterResolver, tf.train.ClusterSpec
        >>> union = tf.distribute.cluster_resolver.UnionResolver(
        ...     simple(spec({"worker": ["a:1"]})), simple(spec({"worker": ["b:1"], "ps": ["c:1"]})))
        >>> union.cluster_spec()
        ClusterSpec({'ps': ['c:1'], 'worker': ['a:1', 'b:1']})
    """

    def __init__(
        self,
        *args: ClusterResolver,
        rpc_layer: str | None = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        if not args:
            raise ValueError(
                described(
                    "UnionResolver needs at least one resolver.", fix="pass a ClusterResolver."
                )
            )
        for given in args:
            _check_type(given, ClusterResolver, "each argument", "a ClusterResolver")
        self._resolvers = args
        self._task_type, self._task_id, self._rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """Return the jobs of all resolvers. Tasks of jobs with the same name are merged.

        Raises:
            KeyError: A job's tasks are given by index, and two resolvers have the same index.
        """
        specs = [one.cluster_spec() for one in self._resolvers]
        jobs = dict.fromkeys(job for spec in specs for job in spec.jobs)
        return ClusterSpec(
            {job: _merged_tasks([s for s in specs if job in s.jobs], job) for job in jobs}
        )

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return the address of the given task; without one, the first resolver's master."""
        if task_type is not None and task_id is not None:
            address = self.cluster_spec().task_address(task_type, task_id)
            return with_protocol(address, rpc_layer or self._rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: object = None,
    ) -> Mapping[str, int]:
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)

    @property
    def environment(self) -> str | None:
        return self._resolvers[0].environment

    def _found_task_type(self) -> str | None:
        return self._resolvers[0].task_type

    def _found_task_id(self) -> int | None:
        return self._resolvers[0].task_id

    def _found_rpc_layer(self) -> str | None:
        return self._resolvers[0].rpc_layer


def with_protocol(address: str, rpc_layer: str | None) -> str:
    """Prefix an address with a protocol, if there is one."""
    return f"{rpc_layer}://{address}" if rpc_layer else address


def _merged_tasks(specs: list[ClusterSpec], job: str) -> Any:
    """Merge one job's tasks: concatenate lists, merge dicts."""
    tasks = [spec.as_dict()[job] for spec in specs]
    if all(isinstance(each, list) for each in tasks):
        return [address for each in tasks for address in each]
    found: dict[int, str] = {}
    for spec in specs:
        for index in spec.task_indices(job):
            if index in found:
                raise KeyError(
                    described(
                        f"Two resolvers have a task {index} of the job {job!r}.",
                        fix="give each task of a job its own index, or use lists.",
                    )
                )
            found[index] = spec.task_address(job, index)
    return found


def _check_type(given: object, kind: type, name: str, example: str) -> None:
    if not isinstance(given, kind):
        raise TypeError(
            described(
                f"{name} must be a {kind.__name__}, but got {shortened(given)}.",
                fix=f"pass {example}.",
            )
        )
