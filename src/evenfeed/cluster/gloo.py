"""Gloo, which runs collectives between CPUs: where it listens, and how to interrupt its waits.

A collective that waits for a lost worker fails by itself only if that worker's process ended and this process waits for
data from it directly, not from a third worker that waits for it. So a worker that learns of a lost worker cuts Gloo's
connections: the waiting collectives fail at once, and with them the wait for their results.
"""

import math
import os
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from typing import Any

from evenfeed.cluster.jax_private import gloo_collectives, set_cpu_collectives
from evenfeed.core.lazy import socket

_FOLDER = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"


def arrange(host: str, report_port: Callable[[int], None]) -> None:
    """Make Gloo listen on this worker's address in the cluster, once JAX's backend starts.

    Args:
        host: This worker's host. If it is not an address of this machine, Gloo listens on the machine's name.
        report_port: Called with the port on which Gloo listens.
    """

    def make() -> Any:
        before = _listening_ports()
        collectives = gloo_collectives(host if _is_local(host) else None)
        for port in _listening_ports() - before:
            report_port(port)
        return collectives

    set_cpu_collectives(make)


def limit(seconds: float) -> None:
    """Set how long collectives wait for a worker. XLA reads it when the backend starts."""
    flag = f"--xla_cpu_collective_timeout_seconds={max(1, math.ceil(seconds))}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()


def cut(ports: Collection[int]) -> int:
    """Shut down this process's connections from or to some ports; return how many."""
    return sum(_cut(number, ports) for number in _open_files())


def _cut(number: int, ports: Collection[int]) -> bool:
    with suppress(OSError), _socket(number) as sock:
        other = sock.getpeername()[1]  # an OSError if it is listening
        if other in ports or sock.getsockname()[1] in ports:
            sock.shutdown(socket.SHUT_RDWR)
            return True
    return False


def _listening_ports() -> set[int]:
    """Return the ports on which this process listens."""
    ports: set[int] = set()
    for number in _open_files():
        with suppress(OSError), _socket(number) as sock:
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                ports.add(sock.getsockname()[1])
    return ports


def _open_files() -> list[int]:
    return [int(name) for name in os.listdir(_FOLDER)]


@contextmanager
def _socket(number: int) -> Generator[Any]:
    """Yield a duplicate of an open file if it is an internet socket; else raise OSError."""
    copy = os.dup(number)
    try:
        sock = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
    with sock:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            raise OSError("not an internet socket")
        yield sock


def _is_local(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError:
        return False
    return True
