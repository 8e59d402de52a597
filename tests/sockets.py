"""Connections of this process to itself."""

import socket


def connected(count: int) -> list[tuple[socket.socket, socket.socket]]:
    """Return so many connections, both ends of each: who asked, and who listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        asking = [socket.create_connection(server.getsockname()) for _ in range(count)]
        return [(one, server.accept()[0]) for one in asking]
