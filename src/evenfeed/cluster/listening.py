"""Where the coordination service listens: TCP sockets for the workers, and a private folder for Unix sockets."""

import errno
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, Final

from evenfeed.core.lazy import socket

_MAX_PATH: Final = 60  # the path of a Unix socket may have about a hundred characters


@contextmanager
def private_folder() -> Generator[str]:
    """Create a folder that only this user can enter, and remove it afterwards."""
    usual = tempfile.gettempdir()
    parent = usual if len(usual) < _MAX_PATH else "/tmp"
    with tempfile.TemporaryDirectory(
        prefix="evenfeed-", dir=parent, ignore_cleanup_errors=True
    ) as folder:
        yield folder


EVERYWHERE: Final = "everywhere"  # the service prints it if it listens on all addresses

BACKLOG: Final = 1024
_NOT_LOCAL: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def listeners(host: str, port: int, *, is_one_machine: bool) -> tuple[list[Any], bool]:
    """Listen on the addresses of a host.

    If none of them belongs to this machine (it is behind NAT, or the name is that of a container's host), listen on
    all addresses of this machine.

    Args:
        host: A host name or an address.
        port: The port.
        is_one_machine: Whether all workers run on this machine.

    Returns:
        The sockets, and whether they listen on all addresses.

    Raises:
        OSError: The port is in use.
    """
    addresses = _addresses(host, port, is_one_machine)
    found = [_listening(family, address) for family, address in addresses]
    here = [sock for sock in found if sock is not None]
    return (here, False) if here else ([_everywhere(port)], True)


def _addresses(host: str, port: int, is_one_machine: bool) -> list[tuple[Any, Any]]:
    """Return the addresses of a host that the other workers can reach."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return []
    addresses: list[tuple[Any, Any]] = list(dict.fromkeys((sock[0], sock[4]) for sock in found))
    is_name = host not in {address[0] for _, address in addresses}
    if is_one_machine or not is_name:
        return addresses
    # Many systems resolve their own name to 127.0.1.1, which other machines cannot reach.
    return [sock for sock in addresses if not ip_address(sock[1][0].partition("%")[0]).is_loopback]


def _listening(family: Any, address: Any) -> Any:
    """Listen on an address; return None if it does not belong to this machine."""
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno in _NOT_LOCAL:
            return None
        raise


def _everywhere(port: int) -> Any:
    try:
        return socket.create_server(
            ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
        )
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise
        return socket.create_server(("", port), backlog=BACKLOG)  # a machine without IPv6
