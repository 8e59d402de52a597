"""The cluster that mpirun started, from the variables that it sets."""

import os
from collections.abc import Sequence
from itertools import count
from typing import Final

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.errors import described

# Of Open MPI, and of MPICH and Intel MPI: rank, number of ranks, and those on this host.
_VARIABLES: Final = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
)


class MPIClusterResolver(ClusterResolver):
    """Takes rank and number of workers from Open MPI, MPICH or Intel MPI; the ranks are workers.

    Args:
        hosts: The host of each rank, in their order. Where all ranks are on one host, nothing need be
            passed.
        port_base: The port of the first worker of a host; the others count on from it.
        rpc_layer: The protocol.

    Raises:
        RuntimeError: No mpirun started this process.
        ValueError: There are several hosts, and `hosts` does not name that of each rank.

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
                    f"mpirun started {size} ranks, {here} of them here, but does not say where the others "
                    f"are, and hosts={hosts!r}.",
                    fix="pass the host of each rank, in their order: hosts=['node1', 'node1', 'node2'].",
                )
            )
        self._port_base = port_base
        self._task_type, self._task_id, self._rpc_layer = "worker", rank, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """Return host and port of each rank."""
        ports = {host: count(self._port_base) for host in self._hosts}
        return ClusterSpec({"worker": [f"{host}:{next(ports[host])}" for host in self._hosts]})

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return the address of a worker, by default of this one."""
        return self._own_master(task_type, task_id, rpc_layer)


def _ranks() -> tuple[int, int, int]:
    """Return this rank, how many there are, and how many on this host: where that is not said, this one."""
    for rank, size, here in _VARIABLES:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size]), int(os.environ.get(here, "1"))
    raise RuntimeError(
        described(
            "The environment has no OMPI_COMM_WORLD_RANK and no PMI_RANK: no mpirun started this process.",
            fix="start the program with mpirun -n 4 python script.py.",
        )
    )
