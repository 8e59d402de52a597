"""A process between a worker's JAX client and the coordination service. Runs as a program.

JAX aborts a worker when its connection to the service ends, without an exception in Python. If the machine of worker
0 were preempted, all other workers would die before they could save. This process does not pass the end of that
connection on. The worker learns of it from its own connection instead (`failure_watch.py`).

It is a process because JAX may wait for the service while it holds the GIL. It runs as a plain file that imports
nothing from evenfeed, so it starts in some 20 ms.
"""

import hmac
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import Final

_BYTES: Final = 1 << 16
_POLL_SECONDS: Final = 1.0
_CONNECT_SECONDS: Final = 10.0
_GREETING_BYTES: Final = 200


def main(path: str, service: tuple[str, int], place: int, parent: int, key: bytes) -> None:
    """Forward data between JAX and the service, until the parent process is gone.

    Args:
        path: The Unix socket at which to listen for JAX.
        service: The host and the port of the service.
        place: This worker's position.
        parent: The worker's pid. It may have ended before this line runs.
        key: Proves to the service that this process belongs to that worker.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a worker that is saving still needs this process
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.close()
        listener.settimeout(_POLL_SECONDS)
        kept: list[socket.socket] = []
        while os.getppid() == parent:
            with suppress(OSError, ValueError):  # no connection yet, or the service is down
                inner, _ = listener.accept()
                kept.append(inner)
                outer = socket.create_connection(service, _CONNECT_SECONDS)
                kept.append(outer)
                _prove(outer, place, key)
                _forward(inner, outer)
    os._exit(0)  # without waiting for the threads


def _prove(outer: socket.socket, place: int, key: bytes) -> None:
    """Prove to the service that this process belongs to a registered worker (see handshake.py)."""
    greeting = b""
    while not greeting.endswith(b"\n") and len(greeting) < _GREETING_BYTES:
        greeting += outer.recv(1) or b"\n"
    challenge = greeting.decode().split(" ")[2:3]
    proof = hmac.new(key, "\n".join(["proxy", *challenge]).encode(), "sha256").hexdigest()
    outer.sendall(f'{{"proxy": {place}, "proof": "{proof}"}}\n'.encode())


def _forward(inner: socket.socket, outer: socket.socket) -> None:
    outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for source, target in ((inner, outer), (outer, inner)):
        target.settimeout(None)
        threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Forward all data, but not the end of the stream."""
    with suppress(OSError):
        while data := source.recv(_BYTES):
            target.sendall(data)


if __name__ == "__main__":
    main(
        sys.argv[1],
        (sys.argv[2], int(sys.argv[3])),
        int(sys.argv[4]),
        int(sys.argv[5]),
        sys.stdin.buffer.readline().strip(),
    )
