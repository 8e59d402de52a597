"""TCP keepalive: how long a machine may be silent before it counts as lost.

The operating systems probe each other, not the programs. So a program that computes, or is stopped in a debugger, does
not count as silent.
"""

from typing import Any, Final

from evenfeed.core.lazy import socket

SECONDS: Final = 4  # survivors are told within five seconds

# By name, because not every system has all of them.
_SETTINGS: Final = {
    "TCP_KEEPIDLE": 1,
    "TCP_KEEPALIVE": 1,  # the name of TCP_KEEPIDLE on macOS
    "TCP_KEEPINTVL": 1,
    "TCP_KEEPCNT": SECONDS - 1,
    "TCP_USER_TIMEOUT": 1000 * SECONDS,
}


def watch(connection: Any) -> None:
    """Make a connection fail when the machine at its other end is silent."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SETTINGS.items():
        number = getattr(socket, name, None)
        if number is not None:
            connection.setsockopt(socket.IPPROTO_TCP, number, value)


def describe_end(error: OSError | None, process: str) -> str:
    """Describe how the connection to a process ended."""
    if isinstance(error, TimeoutError):
        return f"its machine did not answer for {SECONDS} seconds"
    if error is None or isinstance(error, ConnectionError):
        return f"{process} exited unexpectedly"
    return f"its machine cannot be reached ({error.strerror})"
