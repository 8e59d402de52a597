"""A folder for sockets that only this user can reach."""

import errno
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, Final

from evenfeed.core.lazy import socket

_LONG: Final = 60  # the path of a socket may have about a hundred letters


@contextmanager
def private_folder() -> Generator[str]:
    """Make a folder that only this user can enter, and remove it afterwards."""
    usual = tempfile.gettempdir()
    parent = usual if len(usual) < _LONG else "/tmp"
    with tempfile.TemporaryDirectory(
        prefix="evenfeed-", dir=parent, ignore_cleanup_errors=True
    ) as folder:
        yield folder


EVERYWHERE: Final = "everywhere"  # what the service prints if it listens at all addresses

BACKLOG: Final = 1024
_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def listeners(host: str, port: int, *, is_one_machine: bool) -> tuple[list[Any], bool]:
    """Listen at the addresses of a host.

    If none of them is an address of this machine (it is behind NAT, or a container's host is named), listen at all
    addresses of this machine.

    Args:
        host: A name or an address.
        port: The port.
        is_one_machine: Whether all workers run on this machine.

    Returns:
        The sockets, and whether they listen at all addresses.

    Raises:
        OSError: The port is taken.
    """
    addresses = _addresses(host, port, is_one_machine)
    found = [_listening(family, address) for family, address in addresses]
    here = [one for one in found if one is not None]
    return (here, False) if here else ([_everywhere(port)], True)


def _addresses(host: str, port: int, is_one_machine: bool) -> list[tuple[Any, Any]]:
    """Return the addresses at which the other workers can reach a host."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return []
    addresses: list[tuple[Any, Any]] = list(dict.fromkeys((one[0], one[4]) for one in found))
    is_name = host not in {address[0] for _, address in addresses}
    if is_one_machine or not is_name:
        return addresses
    # Many systems resolve their own name to 127.0.1.1, which other machines cannot reach.
    return [one for one in addresses if not ip_address(one[1][0].partition("%")[0]).is_loopback]


def _listening(family: Any, address: Any) -> Any:
    """Listen at an address; return None if it is not this machine's."""
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno in _NOT_HERE:
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
