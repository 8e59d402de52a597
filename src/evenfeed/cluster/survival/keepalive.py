"""How long a machine may be silent before it counts as lost.

The systems on both sides ask each other, not the programs: one that computes, or is held by a debugger, is
not silent.
"""

from typing import Any, Final

from evenfeed.core.lazy import socket

SECONDS: Final = 4  # a survivor is told within five

# By their names, for not every system has all of them.
_SETTINGS: Final = {
    "TCP_KEEPIDLE": 1,
    "TCP_KEEPALIVE": 1,  # what macOS calls the first one
    "TCP_KEEPINTVL": 1,
    "TCP_KEEPCNT": SECONDS - 1,
    "TCP_USER_TIMEOUT": 1000 * SECONDS,
}


def watch(connection: Any) -> None:
    """Let a connection fail where the machine at its other end is silent."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SETTINGS.items():
        number = getattr(socket, name, None)
        if number is not None:
            connection.setsockopt(socket.IPPROTO_TCP, number, value)


def said(error: OSError | None, process: str) -> str:
    """Say how a connection to a process ended: by an error, or just so."""
    if isinstance(error, TimeoutError):
        return f"its machine did not answer for {SECONDS} seconds"
    if error is None or isinstance(error, ConnectionError):
        return f"{process} ended without a word"
    return f"its machine cannot be reached ({error.strerror})"
