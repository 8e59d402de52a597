"""The cluster that mpirun started, from the variables that mpirun sets."""

import os
from collections.abc import Sequence
from itertools import count
from typing import Final

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.errors import described

# Rank, number of ranks, and number of ranks on this host: first for Open MPI, then for MPICH and Intel MPI.
_VARIABLES: Final = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
)


class MPIClusterResolver(ClusterResolver):
    """Reads rank and number of ranks from Open MPI, MPICH or Intel MPI. All ranks are workers.

    Args:
        hosts: The host of each rank, in rank order. Not needed if all ranks are on one host.
        port_base: The port of a host's first worker; its other workers use the following ports.
        rpc_layer: The protocol.

    Raises:
        RuntimeError: This process was not started by mpirun.
        ValueError: There are several hosts, and `hosts` does not have one entry per rank.

    Examples:
        >>> import os
        >>> import evenfeed as tf
        >>> os.environ |= {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"}
        >>> resolver = tf.distribute.cluster_resolver.MPIClusterResolver(["a", "a", "b"])
        >>> resolver.cluster_spec(), resolver.task_id
        (ClusterSpec({'worker': ['a:8888', 'a:8889', 'b:8888']}), 1)
        >>> del os.environ["OMPI_COMM_WORLD_RANK"], os.environ["OMPI_COMM_WORLD_SIZE"]
    """

    def __init__(
        self,
        hosts: Sequence[str] | None = None,
        port_base: int = 8888,
        rpc_layer: str | None = None,
    ) -> None:
        rank, size, here = _ranks()
        self._hosts = ["localhost"] * size if hosts is None else list(hosts)
        if len(self._hosts) != size or (hosts is None and here != size):
            raise ValueError(
                described(
                    f"hosts must have one entry for each of the {size} ranks ({here} on this host), but got {hosts!r}.",
                    fix="pass the host of each rank, in rank order: hosts=['node1', 'node1', 'node2'].",
                )
            )
        self._port_base = port_base
        self._task_type, self._task_id, self._rpc_layer = "worker", rank, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """Return the host and port of each rank."""
        ports = {host: count(self._port_base) for host in self._hosts}
        return ClusterSpec({"worker": [f"{host}:{next(ports[host])}" for host in self._hosts]})

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return the address of a worker, by default this one."""
        return self._task_master(task_type, task_id, rpc_layer)


def _ranks() -> tuple[int, int, int]:
    """Return this rank, the number of ranks, and the number on this host (1 if unknown)."""
    for rank, size, here in _VARIABLES:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size]), int(os.environ.get(here, "1"))
    raise RuntimeError(
        described(
            "The environment has no OMPI_COMM_WORLD_RANK and no PMI_RANK: mpirun did not start this process.",
            fix="start the program with mpirun -n 4 python script.py.",
        )
    )
