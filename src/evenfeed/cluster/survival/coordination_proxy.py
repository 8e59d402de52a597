"""The process between a worker's client of JAX's and the coordination service.

JAX aborts a worker at once, without a word to Python, when its connection to the service ends: when the machine
of worker 0 is taken away, all others would go before they could save. Here the end of that connection is not
passed on. The worker is told of it by its line.

It is a process because JAX may wait for the service while it holds Python's lock, and it is started as a file: it needs
nothing of evenfeed's, and so it starts in some 20 ms.
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
_LOOK_SECONDS: Final = 1.0
_CONNECT_SECONDS: Final = 10.0
_GREETING_BYTES: Final = 200


def main(path: str, host: str, port: int, place: int, key: bytes) -> None:
    """Pass on what comes to and from a service, until the process that started this is gone.

    Args:
        path: Where to listen for JAX: a socket of this machine.
        host: The service's host.
        port: Its port.
        place: Which worker this is.
        key: Shows to the service that this is a process of that worker.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a worker that saves its state still needs it
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.close()
        listener.settimeout(_LOOK_SECONDS)
        kept: list[socket.socket] = []
        while os.getppid() == parent:
            with suppress(OSError, ValueError):  # nobody came; or the service is not there
                inner, _ = listener.accept()
                kept.append(inner)
                outer = socket.create_connection((host, port), _CONNECT_SECONDS)
                kept.append(outer)
                _prove(outer, place, key)
                _join(inner, outer)
    os._exit(0)  # and wait for no thread


def _prove(outer: socket.socket, place: int, key: bytes) -> None:
    """Prove to the service that this is a process of a registered worker (see handshake.py)."""
    greeting = b""
    while not greeting.endswith(b"\n") and len(greeting) < _GREETING_BYTES:
        greeting += outer.recv(1) or b"\n"
    challenge = greeting.decode().split(" ")[2:3]
    proof = hmac.new(key, "\n".join(["shield", *challenge]).encode(), "sha256").hexdigest()
    outer.sendall(f'{{"shield": {place}, "proof": "{proof}"}}\n'.encode())


def _join(inner: socket.socket, outer: socket.socket) -> None:
    outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for source, target in ((inner, outer), (outer, inner)):
        target.settimeout(None)
        threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Pass on all that comes, and not that nothing comes any more."""
    with suppress(OSError):
        while data := source.recv(_BYTES):
            target.sendall(data)


if __name__ == "__main__":
    main(
        sys.argv[1],
        sys.argv[2],
        int(sys.argv[3]),
        int(sys.argv[4]),
        sys.stdin.buffer.readline().strip(),
    )
