"""Gloo, which carries collectives between CPUs: where it listens, and how its waits are ended.

A collective that waits for a lost worker ends by itself only if that worker's process ended, and this one waits for
its bytes and not for those of a third who does. So who hears of a lost worker cuts Gloo's connections: the
collectives that wait then fail at once, and with them the wait for their results.
"""

import math
import os
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from typing import Any

from evenfeed.cluster.jax_private import gloo_collectives, set_cpu_collectives
from evenfeed.core.lazy import socket

_FOLDER = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"


def arrange(host: str, tell: Callable[[int], None]) -> None:
    """Let Gloo listen where the cluster says that this worker is, once JAX's backend starts.

    Args:
        host: This worker's. Where it is no address of this machine, Gloo listens at the machine's name.
        tell: Called with the port.
    """

    def make() -> Any:
        before = _listening()
        collectives = gloo_collectives(host if _is_here(host) else None)
        for port in _listening() - before:
            tell(port)
        return collectives

    set_cpu_collectives(make)


def limit(seconds: float) -> None:
    """Let collectives give up a worker that does not come in time. XLA reads it when the backend starts."""
    flag = f"--xla_cpu_collective_timeout_seconds={max(1, math.ceil(seconds))}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()


def cut(ports: Collection[int]) -> int:
    """End the connections from or to some ports, in this process; return how many."""
    return sum(_cut(number, ports) for number in _numbers())


def _cut(number: int, ports: Collection[int]) -> bool:
    with suppress(OSError), _socket(number) as one:
        other = one.getpeername()[1]  # none, where it listens
        if other in ports or one.getsockname()[1] in ports:
            one.shutdown(socket.SHUT_RDWR)
            return True
    return False


def _listening() -> set[int]:
    """Return the ports at which this process listens."""
    ports: set[int] = set()
    for number in _numbers():
        with suppress(OSError), _socket(number) as one:
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                ports.add(one.getsockname()[1])
    return ports


def _numbers() -> list[int]:
    return [int(name) for name in os.listdir(_FOLDER)]


@contextmanager
def _socket(number: int) -> Generator[Any]:
    """Open a copy of a file of this process, if it is a socket of the internet's; else an OSError."""
    copy = os.dup(number)
    try:
        one = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
    with one:
        if one.family not in (socket.AF_INET, socket.AF_INET6):
            raise OSError("no address")
        yield one


def _is_here(host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, 0), family=family).close()
    except OSError:
        return False
    return True
